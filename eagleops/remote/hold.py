"""Operation ``hold``: one client at a time does its nightly checks on a machine.

The lock is a flock on a file of this user's state. The kernel lets go of it when the process
that took it ends, however that ends: the client's session over there. The file's content says
who has it, and means something only while the lock is held.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, Dict, Generator, Optional

from eagleops.remote import lock_file, process_table, server_record, supervisor
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure

LOCK = "nightly.lock"
# A note in this file asks the holder that it names to let go.
HANDOVER = "nightly.handover"
TICK_S = 0.25
# From the lock to the note of it: a file of some bytes is written.
NOTE_S = 1.0
# A session that was left behind looks for a handover each tick.
HANDOVER_S = 5.0
POLL_S = 0.02

Note = Dict[str, Any]


def hold(
    context: Context, name: str, purpose: str, client: str = "", take_over: str = ""
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Holds the machine until it is called off, or the session ends.

    Args:
        context: The operation's surroundings.
        name: Who holds it, as the next one is told: ``alice@laptop``.
        purpose: What for, as the next one is told.
        client: The client process's own name, as the next one is told.
        take_over: The ``client`` of a holder that is known to have ended: its session here
            waits for a link that is lost, and is asked to let go.

    Yields:
        ``held`` with ``since_utc`` once, then ``holding`` four times a second.

    Raises:
        Failure: ``held`` while another holds it, with ``holder`` in its data; ``handed_over``
            where one took it that thought this client had ended; ``no_state`` where no state can
            be kept.
    """
    home = os.path.dirname(server_record.servers_home(context))
    yield {"event": "holding"}
    with contextlib.ExitStack() as stack:
        descriptor = lock_file.opened(home, LOCK, "no_state")
        stack.callback(os.close, descriptor)
        _take(context, descriptor, home, take_over)
        note = {
            "name": name,
            "purpose": purpose,
            "client": client,
            "user": process_table.user(os.geteuid()),
            "pid": os.getpid(),
            "since_utc": supervisor.now_utc(),
        }
        # Whatever a predecessor was asked has been done.
        supervisor.remove(os.path.join(home, HANDOVER))
        _write(descriptor, note)
        yield {"event": "held", "since_utc": note["since_utc"]}
        while not _asked_for(home, client):
            context.sleep(TICK_S)
            yield {"event": "holding"}
    raise Failure("handed_over", "another process took the machine: it found this client ended")


def _take(context: Context, descriptor: int, home: str, take_over: str) -> None:
    if lock_file.taken(descriptor):
        return
    holder = _holder(context, descriptor)
    if holder is not None and take_over and holder.get("client") == take_over:
        supervisor.write_json(home, HANDOVER, {"client": take_over})
        deadline = time.monotonic() + HANDOVER_S
        while time.monotonic() < deadline:
            context.sleep(POLL_S)
            if lock_file.taken(descriptor):
                return
    elif holder is None and lock_file.taken(descriptor):
        return
    facts = {"name": "somebody", "purpose": "?", "since_utc": "?", "pid": "?", **(holder or {})}
    raise Failure(
        "held",
        "{name} holds the machine since {since_utc} ({purpose}; PID {pid})".format(**facts),
        way_out="Wait until it has ended, or end that process there.",
        holder=holder,
    )


def _holder(context: Context, descriptor: int) -> Optional[Note]:
    """Who holds the lock; None where nobody has said so in time."""
    deadline = time.monotonic() + NOTE_S
    while True:
        note = _parsed(os.pread(descriptor, 64 * 1024, 0))
        # The note of one who has ended stands until the next one's.
        if note is not None and process_table.stat(note["pid"]) is not None:
            return note
        if time.monotonic() >= deadline:
            return note
        context.sleep(POLL_S)


def _parsed(data: bytes) -> Optional[Note]:
    try:
        note = json.loads(data)
    except ValueError:
        return None
    return note if isinstance(note, dict) and isinstance(note.get("pid"), int) else None


def _write(descriptor: int, note: Note) -> None:
    os.ftruncate(descriptor, 0)
    with contextlib.suppress(OSError):  # a full disk: held all the same, by somebody unnamed
        os.pwrite(descriptor, json.dumps(note).encode("ascii"), 0)


def _asked_for(home: str, client: str) -> bool:
    if not client:
        return False
    try:
        with open(os.path.join(home, HANDOVER), "rb") as file:
            asked = json.loads(file.read())
    except (OSError, ValueError):
        return False
    return isinstance(asked, dict) and asked.get("client") == client
