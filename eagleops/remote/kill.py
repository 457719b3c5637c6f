"""Operation ``kill``: end processes, and do not return before each is really gone.

SIGTERM to all, a grace period, SIGKILL to what is left, and a wait. What a target forks
while it is being ended is ended too.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, Generator, Iterator, List, Set, Tuple

from eagleops.remote import process_table, processes
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.target import Target, aim

POLL_S = 0.01
# Left of the request's time limit, for what is left is a result and no failure.
RESERVE_S = 0.25
# A process with hundreds of GiB of pinned memory takes seconds to end after SIGKILL.
WAIT_S = 30.0
# What still forks after so many rounds is left, and named.
ROUNDS = 5
_INIT = 1

Event = Dict[str, Any]


def kill(
    context: Context,
    targets: List[Dict[str, int]],
    grace_s: float = 5.0,
    wait_s: float = WAIT_S,
) -> Generator[Event, None, Dict[str, Any]]:
    """Ends processes; this one, its ancestors and PID 1 are never among them.

    Args:
        context: The operation's surroundings.
        targets: ``pid`` and ``start_ticks`` of each: a PID that has another start time by
            now is another process, and is not touched.
        grace_s: Seconds between SIGTERM and SIGKILL.
        wait_s: Seconds after SIGKILL until what is left is given up.

    Returns:
        ``killed`` (``pid``, the last ``signal``, ``gone_s`` from the begin), ``gone_already``
        (PIDs), and ``left`` (``pid``, ``state``, ``wchan`` and the ``reason``:
        ``uninterruptible``, ``not_permitted``, ``protected`` or ``alive``).

    Raises:
        Failure: ``foreign_proc``, or ``bad_target``. Out of time is a result, and sends no
            SIGKILL before the grace was over.
    """
    processes.require_own_proc()
    hunt = _Hunt(context, targets)
    try:
        for _ in range(ROUNDS):
            yield from hunt.send(signal.SIGTERM)
            yield from hunt.wait(grace_s)
            if hunt.out_of_time:  # the grace was not over: SIGKILL was not asked for yet
                break
            yield from hunt.send(signal.SIGKILL)
            yield from hunt.wait(wait_s)
            if not hunt.aim_at_offspring():
                break
        return hunt.result()
    finally:
        hunt.close()


class _Hunt:
    """The targets of one kill, and what has become of them."""

    def __init__(self, context: Context, targets: List[Dict[str, int]]) -> None:
        self._context = context
        self._begun_s = time.monotonic()
        self._begun_ticks = _ticks_since_boot()
        self._living: List[Target] = []
        self._ended: List[Target] = []
        self._killed: List[Dict[str, Any]] = []
        self._gone_already: List[int] = []
        self._protected: List[int] = []
        shielded = protected_pids()
        for target in targets:
            pid, start_ticks = _checked(target)
            found = aim(pid, start_ticks)
            if found is None:
                self._gone_already.append(pid)
            elif pid in shielded:
                found.close()
                self._protected.append(pid)
            else:
                self._living.append(found)

    def send(self, number: signal.Signals) -> Iterator[Event]:
        """Signals what is left and may be signalled; SIGTERM goes to each but once."""
        for target in self._living:
            due = number is signal.SIGKILL or not target.last_signal
            if due and not target.refused and target.send(number):
                yield {"event": "signalled", "pid": target.pid, "signal": number.name}
                if number is signal.SIGTERM:
                    target.wake()

    def wait(self, limit_s: float) -> Iterator[Event]:
        """Waits until each is gone that may be signalled, but no longer than ``limit_s``."""
        deadline = time.monotonic() + limit_s
        while True:
            yield from self._note_gone()
            left_s = deadline - time.monotonic()
            if left_s <= 0 or self.out_of_time or all(target.refused for target in self._living):
                return
            self._context.sleep(min(POLL_S, left_s))

    @property
    def out_of_time(self) -> bool:
        """Whether the request's time limit leaves time for the way back alone."""
        return self._context.remaining_s() <= RESERVE_S

    def aim_at_offspring(self) -> bool:
        """Adds what the ended targets forked since the begin; False if there is none.

        Its parent gone, a fork is known by its process group and session, which it has of
        its parent, and by being younger than this kill.
        """
        families = {(target.seen.pgid, target.seen.sid) for target in self._ended}
        known = {target.pid for target in self._living} | protected_pids()
        table = process_table.table()
        for stat in table.values():
            family = (stat.pgid, stat.sid)
            if family not in families or stat.start_ticks < self._begun_ticks or not stat.alive:
                continue
            parent = table.get(stat.ppid)
            orphan = parent is None or (parent.pgid, parent.sid) != family
            found = aim(stat.pid, stat.start_ticks) if orphan and stat.pid not in known else None
            if found is not None:
                self._living.append(found)
        return any(not target.last_signal and not target.refused for target in self._living)

    def result(self) -> Dict[str, Any]:
        """What the operation returns."""
        left = [target.describe() for target in self._living]
        left += [_protected(pid) for pid in self._protected]
        return {"killed": self._killed, "gone_already": self._gone_already, "left": left}

    def close(self) -> None:
        """Lets go of every pidfd."""
        for target in self._living + self._ended:
            target.close()

    def _note_gone(self) -> Iterator[Event]:
        for target in [target for target in self._living if target.gone()]:
            self._living.remove(target)
            self._ended.append(target)
            if target.last_signal:
                gone_s = time.monotonic() - self._begun_s
                ended = {"pid": target.pid, "signal": target.last_signal, "gone_s": gone_s}
                self._killed.append(ended)
            else:
                self._gone_already.append(target.pid)
            yield {"event": "gone", "pid": target.pid}


def protected_pids() -> Set[int]:
    """PID 1, this process, and its ancestors."""
    pids = {_INIT}
    pid = os.getpid()
    while pid > 0 and pid not in pids:
        pids.add(pid)
        stat = process_table.stat(pid)
        pid = 0 if stat is None else stat.ppid
    return pids


def _protected(pid: int) -> Dict[str, Any]:
    stat = process_table.stat(pid)
    state = "" if stat is None else stat.state
    return {"pid": pid, "state": state, "wchan": None, "reason": "protected"}


def _checked(target: Dict[str, int]) -> Tuple[int, int]:
    pid, start_ticks = target.get("pid"), target.get("start_ticks")
    if not isinstance(pid, int) or not isinstance(start_ticks, int) or pid <= 0:
        raise Failure(
            "bad_target", "a target needs a pid above 0 and its start_ticks, got {}".format(target)
        )
    return pid, start_ticks


def _ticks_since_boot() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
