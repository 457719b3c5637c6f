"""Xid errors as the NVIDIA driver writes them into the kernel log.

Of kernel_rc.c (github.com/NVIDIA/open-gpu-kernel-modules, krcReportXid)::

    NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
    NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.
    NVRM: Xid (PCI:0000:01:00 GPU-I:01 GPU-CI:00): 43, pid=1234, ...

Older drivers leave out ``PCI:``, or write ``pid='<unknown>', name=<unknown>``. A line is one only
if it begins so: others repeat what a program or a device calls itself. A process may have any name
of 15 bytes, line ends included.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

_LINE = re.compile(
    r"(?:\[ *[0-9.]{1,20}\] *)?NVRM: Xid "
    r"\((?:PCI:)?([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.[0-7])?"
    r"(?: ([^()]*))?\): ([0-9]{1,4})(?:,\s*(.*))?\Z",
    re.DOTALL,
)
_PROCESS = re.compile(
    r"pid='?([^',]*)'?(?:,\s*name=('<unknown>'|[^,]*))?(?:,\s*(.*))?\Z", re.DOTALL
)
# What moves a cursor, ends a line, or turns the direction of what follows.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_UNKNOWN = frozenset({"", "<unknown>"})
# A message of the driver is a line; what is longer is not it.
TEXT_LIMIT = 300
# A GPU that fails may say so a thousand times a second. Each GPU and code is told in any case.
GROUPS = 200


class Xid(NamedTuple):
    """One Xid line.

    Attributes:
        bus_id: As nvidia-smi writes it: ``00000000:01:00.0``.
        instance: The MIG instance, ``GPU-I:01`` for example; empty for the whole GPU.
        pid: As the kernel counts, which is not a container's count; None where not told.
    """

    bus_id: str
    xid: int
    pid: Optional[int] = None
    process: Optional[str] = None
    text: str = ""
    instance: str = ""


def parse(message: str) -> Optional[Xid]:
    """The Xid that a line of the kernel log tells, or None."""
    found = _LINE.match(message.rstrip())
    if found is None:
        return None
    domain, bus, device, instance, code, rest = found.groups()
    pid, process, text = _process(_CONTROL.sub("?", rest or ""))
    return Xid(
        bus_id(domain, bus, device),
        int(code),
        pid,
        process,
        text[:TEXT_LIMIT],
        instance or "",
    )


def bus_id(domain: str, bus: str, device: str) -> str:
    """A PCI address as nvidia-smi writes it; a GPU is its device's function 0."""
    return "{:08X}:{}:{}.0".format(int(domain, 16), bus.upper(), device.upper())


def _process(rest: str) -> Tuple[Optional[int], Optional[str], str]:
    found = _PROCESS.match(rest)
    if found is None:
        return None, None, rest.strip()
    number, name, text = (part or "" for part in found.groups())
    pid = int(number) if re.fullmatch(r"[0-9]{1,10}", number) else None
    name = name.strip("'")
    return pid, None if name in _UNKNOWN else name, text.strip()


def folded(told: Iterable[Tuple[float, Xid]], limit: int = GROUPS) -> List[Dict[str, Any]]:
    """What was told of each GPU, code and process once, with its first and last time and count.

    Args:
        told: The Xids with their times, in seconds since the epoch.
        limit: How many are told apart by process; past it only by GPU and code, of which
            there cannot be many. None is left out.

    Returns:
        By their first time: ``time_s``, ``last_s``, ``count``, and what :class:`Xid` has: of
        the first one.
    """
    groups: Dict[Tuple[Any, ...], Dict[str, Any]] = {}
    for time_s, xid in told:
        key: Tuple[Any, ...] = (xid.bus_id, xid.xid, xid.process)
        if key not in groups and len(groups) >= limit:
            key = (xid.bus_id, xid.xid)
        group = groups.get(key)
        if group is None:
            groups[key] = dict(xid._asdict(), time_s=time_s, last_s=time_s, count=1)
            continue
        group["count"] += 1
        group["last_s"] = max(group["last_s"], time_s)
        group["time_s"] = min(group["time_s"], time_s)
    return sorted(groups.values(), key=lambda group: group["time_s"])
