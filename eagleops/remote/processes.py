"""The facts of a process, from /proc: whose it is, where it runs, and what it holds.

A process may vanish between two reads; it then has no facts, and that is no failure.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, NamedTuple, Optional

from eagleops.remote import process_table
from eagleops.remote.cgroup import parse_cgroup
from eagleops.remote.failure import Failure

Facts = Dict[str, Any]


class Status(NamedTuple):
    """What /proc/PID/status tells beside stat: the real uid, and the PID in each namespace.

    Attributes:
        nspid: From the namespace that /proc was mounted in to the process's own. More than
            one: it runs in a namespace below.
    """

    uid: Optional[int]
    nspid: List[int]


def parse_status(text: str) -> Status:
    """Reads /proc/PID/status; what is not there (NSpid came with Linux 4.1) is left out."""
    uid: Optional[int] = None
    nspid: List[int] = []
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        numbers = [int(word) for word in rest.split() if word.isascii() and word.isdigit()]
        if name == "Uid" and numbers:
            uid = numbers[0]
        elif name == "NSpid":
            nspid = numbers
    return Status(uid, nspid)


def parse_namespace(link: str) -> Optional[int]:
    """The inode in the target of a /proc/PID/ns link, for example ``pid:[4026531836]``."""
    number = link.partition("[")[2].rstrip("]")
    return int(number) if number.isascii() and number.isdigit() else None


def facts(pid: int) -> Optional[Facts]:
    """Everything that /proc tells of ``pid`` but its device files; None where it is gone."""
    stat = process_table.stat(pid)
    if stat is None:
        return None
    status = parse_status(read(pid, "status"))
    cgroup = parse_cgroup(read(pid, "cgroup"))
    uid = _owner(pid) if status.uid is None else status.uid
    return {
        "pid": pid,
        "ppid": stat.ppid,
        "start_ticks": stat.start_ticks,
        "state": stat.state,
        "uid": uid,
        "user": None if uid is None else process_table.user(uid),
        "title": process_table.title(pid),
        "comm": process_table.printable(stat.comm),
        "cgroup": cgroup.path,
        "container": cgroup.container,
        "nspid": status.nspid or [pid],
        "pid_ns": pid_namespace(pid),
        "sid": stat.sid,
        "pgid": stat.pgid,
        "gpu_devices": [],
        "device_files": [],
        "gpu_mib": {},
        "wchan": wchan(pid) if stat.state == "D" else None,
        "server": None,
    }


def pid_namespace(pid: int) -> Optional[int]:
    """The inode of the process's PID namespace; None where this user may not know."""
    try:
        return parse_namespace(os.readlink("/proc/{}/ns/pid".format(pid)))
    except OSError:
        return None


def wchan(pid: int, thread: Optional[int] = None) -> Optional[str]:
    """The kernel function that a process, or a thread of it, waits in; None where not told."""
    name = read(pid, "wchan" if thread is None else "task/{}/wchan".format(thread)).strip()
    return None if name in {"", "0"} else name


def require_own_proc() -> None:
    """Refuses to go by the PIDs of a /proc that is another namespace's.

    Raises:
        Failure: ``foreign_proc``.
    """
    try:
        seen = os.readlink("/proc/self")
    except OSError:
        seen = ""
    if seen != str(os.getpid()):
        raise Failure(
            "foreign_proc",
            "/proc shows another PID namespace: this process is {} and /proc calls it {}".format(
                os.getpid(), seen or "nothing"
            ),
            way_out="Mount a /proc of that namespace, for example by unshare --mount-proc.",
        )


def _owner(pid: int) -> Optional[int]:
    try:
        return os.stat("/proc/{}".format(pid)).st_uid
    except OSError:
        return None


def read(pid: int, name: str) -> str:
    """The text of /proc/PID/NAME; empty where it cannot be read."""
    try:
        with open("/proc/{}/{}".format(pid, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
