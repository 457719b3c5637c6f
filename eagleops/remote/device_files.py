"""Who has a GPU's device files open: every process's descriptors, read through /proc."""

from __future__ import annotations

import os
import re
from typing import Dict, List, NamedTuple, Optional, Pattern


class Holders(NamedTuple):
    """The processes that have device files open.

    Attributes:
        files: Their device files by PID, sorted, each once.
        unreadable: How many processes' descriptors this user may not read.
    """

    files: Dict[int, List[str]]
    unreadable: int


def device_pattern(prefix: str) -> Pattern[str]:
    """What matches a GPU device file: ``prefix`` and a number, ctl, -uvm, -caps/... .

    A file that was removed while it is open has the kernel's ``(deleted)`` after its name.
    """
    return re.compile(
        re.escape(prefix)
        + r"(?:(?P<minor>[0-9]{1,4})|ctl|-uvm|-uvm-tools|-modeset|-caps/[^/]+)(?: \(deleted\))?",
    )


def minor_of(pattern: Pattern[str], file: str) -> Optional[int]:
    """The number in the name of a GPU's own device file; None for the driver's common ones."""
    found = pattern.fullmatch(file)
    return int(found.group("minor")) if found and found.group("minor") else None


def holders(pattern: Pattern[str]) -> Holders:
    """Looks through every process that this user may look into, but this one.

    A path is told as the holder's own mount namespace has it, so that a container's
    /dev/nvidia0 reads the same from the host.
    """
    files: Dict[int, List[str]] = {}
    unreadable = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            held = open_files(name, pattern)
        except PermissionError:
            unreadable += 1
        except OSError:
            continue
        else:
            if held:
                files[int(name)] = held
    return Holders(files, unreadable)


def open_files(pid: str, pattern: Pattern[str]) -> List[str]:
    """The device files that ``pid`` has open.

    Raises:
        PermissionError: if its descriptors may not be read.
        OSError: if it is gone.
    """
    folder = "/proc/{}/fd".format(pid)
    found = set()
    for descriptor in os.listdir(folder):
        try:
            target = os.readlink(folder + "/" + descriptor)
        except OSError:  # closed meanwhile
            continue
        if pattern.fullmatch(target):
            found.add(target)
    return sorted(found)
