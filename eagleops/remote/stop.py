"""Operation ``stop``: end a server's whole tree, and do not return before it is gone.

SIGTERM goes to the main process alone: it knows how to end its workers. SGLang then waits
for open requests without limit, so the grace period is ours. What is left after it gets
SIGKILL: the tree of before and the tree of then, for a worker whose parent has just died
may be known by either.
"""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Any, Dict, Generator, List, Optional, Set, Tuple

from eagleops.remote import process_table, server_record
from eagleops.remote.context import Context
from eagleops.remote.kill import kill
from eagleops.remote.process_table import Stat
from eagleops.remote.server_record import Record
from eagleops.remote.server_tree import tree
from eagleops.remote.servers import describe, find_record
from eagleops.remote.supervisor import now_utc
from eagleops.remote.target import aim

Event = Dict[str, Any]
Member = Tuple[int, int]  # pid and start_ticks

POLL_S = 0.02
# With the main process gone, its workers are going too: they are not waited for longer.
ORPHAN_GRACE_S = 1.0
# SIGKILL is final, but a process with hundreds of GiB takes seconds to be torn down.
KILL_WAIT_S = 30.0
ROUNDS = 5
# From the tree's end to the supervisor's: its waitpid and one fsync.
RECORD_S = 5.0


def stop(
    context: Context, name: str, grace_s: float = 10.0, wait_s: float = KILL_WAIT_S
) -> Generator[Event, None, Dict[str, Any]]:
    """Ends the server ``name``.

    Args:
        context: The operation's surroundings.
        name: The server's. One that has exited and left processes behind is stopped too.
        grace_s: Seconds between SIGTERM and SIGKILL.
        wait_s: Seconds after SIGKILL until what is left is given up.

    Returns:
        ``server`` (a SERVER dict), ``already_exited`` (whether there was nothing to end),
        ``killed`` and ``left`` as of operation ``kill``.

    Raises:
        Failure: ``no_such_server``.
    """
    record = find_record(context, name)
    ending = _Ending(context, record)
    if not ending.members:
        return {"server": describe(record), "already_exited": True, "killed": [], "left": []}
    if record.stopping is None:
        with contextlib.suppress(OSError):  # a full disk must not keep a server alive
            record.write(server_record.STOPPING, {"stopping_utc": now_utc(), "grace_s": grace_s})
    yield from ending.ask(grace_s)
    yield from ending.force(wait_s)
    ending.await_record()
    now = server_record.read(context, name) or record
    return {
        "server": describe(now),
        "already_exited": False,
        "killed": ending.killed,
        "left": ending.left,
    }


class _Ending:
    """One server that is being stopped.

    Attributes:
        members: Its tree, as it was when it was last looked at and before.
        killed, left: As of operation ``kill``.
    """

    def __init__(self, context: Context, record: Record) -> None:
        self._context = context
        self._record = record
        self._begun_s = time.monotonic()
        self.members: Set[Member] = set()
        self.killed: List[Dict[str, Any]] = []
        self.left: List[Dict[str, Any]] = []
        self._look()

    def ask(self, grace_s: float) -> Generator[Event, None, None]:
        """SIGTERM to the main process, and the grace period."""
        pid, start_ticks = self._record.process["pid"], self._record.process["start_ticks"]
        main = aim(pid, start_ticks) if self._record.main() is not None else None
        if main is None:
            return
        try:
            if not main.send(signal.SIGTERM):
                return
            yield {"event": "signalled", "pid": pid, "signal": "SIGTERM"}
            main.wake()
            deadline: float = time.monotonic() + grace_s
            told = False
            while time.monotonic() < deadline and self._context.remaining_s() > POLL_S:
                if main.gone() and not told:
                    told = True
                    deadline = min(deadline, time.monotonic() + ORPHAN_GRACE_S)
                    yield self._gone(pid)
                if told and not self._look():
                    return
                self._context.sleep(POLL_S)
        finally:
            main.close()

    def force(self, wait_s: float) -> Generator[Event, None, None]:
        """SIGKILL to everything that is left, until nothing is, or ``wait_s`` has passed."""
        deadline = time.monotonic() + wait_s
        for _ in range(ROUNDS):
            alive = self._look()
            if not alive:
                self.left = []
                return
            targets = [{"pid": pid, "start_ticks": ticks} for pid, ticks in sorted(alive)]
            remaining_s = max(0.0, deadline - time.monotonic())
            result = yield from kill(self._context, targets, grace_s=0.0, wait_s=remaining_s)
            self.killed += result["killed"]
            self.left = result["left"]
            if self.left:
                return

    def await_record(self) -> None:
        """Gives the supervisor the moment it needs; a lost server's end is recorded here."""
        record = self._record
        deadline = time.monotonic() + min(RECORD_S, self._context.remaining_s() - POLL_S)
        while record.supervisor() is not None and time.monotonic() < deadline and not self.left:
            self._context.sleep(POLL_S)
        if record.reread_exit() is None and record.supervisor() is None and not self.left:
            with contextlib.suppress(OSError):
                end = {"exit_status": None, "signal": None, "ended_utc": now_utc()}
                record.write(server_record.EXIT, end)

    def _look(self) -> Set[Member]:
        """The members that live now, those that came since the last look among them."""
        table = process_table.table()
        for pid in tree(self._record, table):
            entry: Optional[Stat] = table.get(pid)
            if entry is not None:
                self.members.add((pid, entry.start_ticks))
        return {
            (pid, ticks)
            for pid, ticks in self.members
            if pid in table and table[pid].start_ticks == ticks and table[pid].alive
        }

    def _gone(self, pid: int) -> Event:
        gone_s = time.monotonic() - self._begun_s
        self.killed.append({"pid": pid, "signal": "SIGTERM", "gone_s": gone_s})
        return {"event": "gone", "pid": pid}
