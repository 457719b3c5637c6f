"""Which processes belong to a launched server.

While its supervisor lives: everything below it, for it is the tree's subreaper, so a worker
that outlives its parent comes back to it. Once the supervisor is gone: what carries the
launch's id in its environment, and what is below that.
"""

from __future__ import annotations

import os
from typing import Dict, List, Set

from eagleops.remote import environ_block
from eagleops.remote.live_environ import read_live
from eagleops.remote.memory import CannotRead, ProcessMemory
from eagleops.remote.process_table import Stat, descendants, table
from eagleops.remote.server_record import Record

LAUNCH_ID = b"EAGLEOPS_LAUNCH_ID"


def tree(record: Record, processes: Dict[int, Stat]) -> List[int]:
    """The pids of the server's tree that live, the supervisor not among them, sorted."""
    if not record.here:
        return []
    guard, main = record.supervisor(), record.main()
    roots: Set[int] = set()
    found: Set[int] = set()
    if main is not None:
        found.add(main.pid)
        roots.add(main.pid)
    if guard is not None:
        roots.add(guard.pid)
    if guard is None or not record.process["subreaper"]:
        strays = _strays(record, processes)
        found |= strays
        roots |= strays
    found |= descendants(processes, roots)
    found.discard(record.process["supervisor_pid"] if guard is not None else -1)
    return sorted(pid for pid in found if pid not in processes or processes[pid].alive)


def living_tree(record: Record) -> List[int]:
    """:func:`tree` of this moment."""
    return tree(record, table())


def _strays(record: Record, processes: Dict[int, Stat]) -> Set[int]:
    guard, oldest = record.process["supervisor_pid"], record.process["supervisor_start_ticks"]
    launch_id = record.launch_id.encode("ascii")
    leader = processes.get(guard)
    # A session's number is free again only when the session is empty: a younger process of
    # that pid means that those who have the number now are strangers.
    own_session = leader is None or leader.start_ticks == oldest
    return {
        entry.pid
        for entry in processes.values()
        if entry.start_ticks >= oldest
        and entry.alive
        and entry.pid != record.process["supervisor_pid"]
        and _carries(
            entry, launch_id, own_session and record.process["supervisor_pid"] == entry.sid
        )
    }


def _carries(entry: Stat, launch_id: bytes, same_session: bool) -> bool:
    try:
        with open("/proc/{}/environ".format(entry.pid), "rb") as file:
            content = file.read()
    except OSError:
        return same_session
    block = environ_block.parse(content)
    if LAUNCH_ID in block.variables:
        return block.variables[LAUNCH_ID] == launch_id
    if block.state == environ_block.WHOLE:
        return False
    return same_session or _carries_live(entry.pid, launch_id)


def _carries_live(pid: int, launch_id: bytes) -> bool:
    """A worker that wrote a title over its environment block still has the live one."""
    try:
        with ProcessMemory(pid) as memory:
            live = read_live(
                memory,
                _content("/proc/{}/auxv".format(pid)),
                lambda offset, size: _piece("/proc/{}/exe".format(pid), offset, size),
                lambda: _content("/proc/{}/maps".format(pid)),
            )
    except (OSError, CannotRead):
        return False
    return live.variables.get(LAUNCH_ID) == launch_id


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _piece(path: str, offset: int, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)
