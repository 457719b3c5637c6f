"""The processes of this machine as ``/proc/PID/stat`` tells them, and their descent."""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, NamedTuple, Optional, Set

from eagleops.remote import redact

DEAD = frozenset("ZXx")
# Of the fields after the name; proc(5) counts from 1 and from the line's begin.
START_FIELD = 19


class Stat(NamedTuple):
    """One process.

    Attributes:
        start_ticks: When it started, in clock ticks since boot; with the pid and the boot it
            names a process for good, for a pid alone is used again.
        threads: Those of it that still live.
    """

    pid: int
    ppid: int
    pgid: int
    sid: int
    state: str
    start_ticks: int
    threads: int
    comm: str

    @property
    def alive(self) -> bool:
        """Whether it runs, or a thread of it does: such a zombie still holds its memory."""
        return self.state not in DEAD or self.threads > 1


def parse_stat(content: bytes) -> Stat:
    """``/proc/PID/stat``. The name in it may hold blanks and parentheses.

    Raises:
        ValueError: if ``content`` is no such line, as when the process went while it was read.
    """
    start, end = content.index(b"("), content.rindex(b")")
    fields = content[end + 1 :].split()
    if len(fields) < START_FIELD + 1:
        raise ValueError("{} fields after the name".format(len(fields)))
    return Stat(
        pid=int(content[:start]),
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        state=fields[0].decode("ascii"),
        start_ticks=int(fields[START_FIELD]),
        threads=int(fields[17]),
        comm=content[start + 1 : end].decode("utf-8", "replace"),
    )


def stat(pid: int) -> Optional[Stat]:
    """The process ``pid``; None where there is none."""
    return stat_of("/proc/{}/stat".format(pid))


def stat_of(path: str) -> Optional[Stat]:
    """The process or thread whose ``stat`` is at ``path``; None where there is none."""
    try:
        with open(path, "rb") as file:
            return parse_stat(file.read())
    except (OSError, ValueError):
        return None


def table() -> Dict[int, Stat]:
    """Every process that can be seen from here."""
    found = (stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {entry.pid: entry for entry in found if entry is not None}


def descendants(processes: Dict[int, Stat], roots: Iterable[int]) -> Set[int]:
    """The pids below ``roots``, without the roots themselves."""
    children: Dict[int, List[int]] = {}
    for entry in processes.values():
        children.setdefault(entry.ppid, []).append(entry.pid)
    found: Set[int] = set()
    pending = list(roots)
    while pending:
        below = [pid for pid in children.get(pending.pop(), []) if pid not in found]
        found.update(below)
        pending.extend(below)
    return found


def title(pid: int) -> str:
    """The command line as people read it, secrets left out; ``[name]`` where there is none.

    Control characters, which a terminal would obey, stand as blanks.
    """
    try:
        with open("/proc/{}/cmdline".format(pid), "rb") as file:
            arguments = file.read().rstrip(b"\0").decode("utf-8", "replace").split("\0")
    except OSError:
        arguments = []
    words = printable(" ".join(redact.argv(arguments)))
    if words:
        return words
    entry = stat(pid)
    return "" if entry is None else "[{}]".format(printable(entry.comm))


def printable(text: str) -> str:
    """``text`` with a blank for each character that a terminal would obey, stripped."""
    return "".join(sign if sign.isprintable() else " " for sign in text).strip()


def user(uid: int) -> str:
    """The name of ``uid``; the number where it has none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def owner(pid: int) -> str:
    """The user that ``pid`` runs as; empty where it is gone."""
    try:
        return user(os.stat("/proc/{}".format(pid)).st_uid)
    except OSError:
        return ""
