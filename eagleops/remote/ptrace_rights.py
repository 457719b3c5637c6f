"""Why a process's memory may not be read from here, and what would allow it.

The rule is the kernel's (ptrace(2), "Ptrace access mode checking"): the same user and a
process that may be dumped, or CAP_SYS_PTRACE in its user namespace; and then Yama's word.
"""

from __future__ import annotations

import errno
import os
from typing import Dict, NamedTuple, Optional, Tuple

YAMA = "/proc/sys/kernel/yama/ptrace_scope"
CAP_SYS_PTRACE = 19

GRANT = "let the machine be entered as root (address: root@... in hosts.yaml)"


class Rights(NamedTuple):
    """What the kernel weighs when this process wants to read that one.

    Attributes:
        uid: The effective user here.
        capable: Whether this process has CAP_SYS_PTRACE.
        yama: ``kernel.yama.ptrace_scope``; None on a kernel without Yama.
        target_uid: The process's real user; None where that is hidden.
        dumpable: False for a process that has been made undumpable (setuid, prctl).
        same_user_namespace: None where that is hidden, as it is where reading is refused.
        initial_user_namespace: Whether this process is in the machine's own.
        fewer_capabilities: Whether the process has capabilities that this one lacks.
    """

    uid: int
    capable: bool
    yama: Optional[int]
    target_uid: Optional[int]
    dumpable: bool
    same_user_namespace: Optional[bool]
    initial_user_namespace: bool
    fewer_capabilities: bool


def explain(rights: Rights, code: int = errno.EACCES) -> Tuple[str, str]:
    """The reason why reading was refused with the error ``code``, and the way out."""
    if rights.yama == 3:  # noqa: PLR2004 - YAMA_SCOPE_NO_ATTACH
        return (
            "kernel.yama.ptrace_scope is 3: no process may read another's memory",
            "remove the setting from /etc/sysctl.d and boot: until then nobody can lift it",
        )
    if rights.capable and _elsewhere(rights):
        return (
            "the process is in another user namespace, where this user has no CAP_SYS_PTRACE",
            "verify from outside the container: as root on the host, with --pid",
        )
    if not rights.capable:
        denied = _without_capability(rights)
        if denied:
            return denied
    return (
        "reading the process's memory was refused ({})".format(os.strerror(code)),
        "a security module forbids it: see /proc/PID/attr/current and, for SELinux, "
        "`getsebool deny_ptrace`; or " + GRANT,
    )


def _elsewhere(rights: Rights) -> bool:
    if rights.same_user_namespace is None:
        return not rights.initial_user_namespace
    return not rights.same_user_namespace


def _without_capability(rights: Rights) -> Optional[Tuple[str, str]]:
    if rights.target_uid is not None and rights.target_uid != rights.uid:
        return (
            "the process belongs to uid {}, and this is uid {} without CAP_SYS_PTRACE".format(
                rights.target_uid, rights.uid
            ),
            "enter the machine as that user, or " + GRANT,
        )
    if rights.yama in (1, 2):
        return (
            "kernel.yama.ptrace_scope is {} and this user (uid {}) has no CAP_SYS_PTRACE".format(
                rights.yama, rights.uid
            ),
            "run `sysctl -w kernel.yama.ptrace_scope=0` as root (for a container: on its host), "
            "or " + GRANT,
        )
    if not rights.dumpable:
        return (
            "the process has made itself undumpable (prctl, or a setuid program)",
            GRANT[0].upper() + GRANT[1:],
        )
    if rights.fewer_capabilities:
        return (
            "the process has capabilities that this one lacks, CAP_SYS_PTRACE among them",
            "give the container CAP_SYS_PTRACE (docker run --cap-add SYS_PTRACE)",
        )
    return None


def rights_over(pid: int) -> Rights:
    """Asks the kernel for what :func:`explain` needs to know."""
    own, target = _status("self"), _status(str(pid))
    own_capabilities = int(own.get("CapEff", "0"), 16)
    target_capabilities = int(target.get("CapPrm", "0"), 16)
    target_uid = int(target["Uid"].split()[0]) if "Uid" in target else None
    return Rights(
        uid=os.geteuid(),
        capable=bool(own_capabilities >> CAP_SYS_PTRACE & 1),
        yama=_number(YAMA),
        target_uid=target_uid,
        dumpable=target_uid is None or _owner(pid) == int(target["Uid"].split()[1]),
        same_user_namespace=_same_namespace(pid),
        initial_user_namespace=_maps_every_user(),
        fewer_capabilities=bool(target_capabilities & ~own_capabilities),
    )


def _maps_every_user() -> bool:
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            return file.read().split() == ["0", "0", "4294967295"]
    except OSError:
        return True


def _status(pid: str) -> Dict[str, str]:
    try:
        with open("/proc/{}/status".format(pid), encoding="utf-8", errors="replace") as file:
            pairs = (line.partition(":") for line in file)
            return {name: value.strip() for name, _, value in pairs}
    except OSError:
        return {}


def _number(path: str) -> Optional[int]:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _owner(pid: int) -> Optional[int]:
    # The folder itself stays the user's; the files of an undumpable process become root's.
    try:
        return os.stat("/proc/{}/environ".format(pid)).st_uid
    except OSError:
        return None


def _same_namespace(pid: int) -> Optional[bool]:
    try:
        there = os.stat("/proc/{}/ns/user".format(pid)).st_ino
    except OSError:
        return None
    return there == os.stat("/proc/self/ns/user").st_ino
