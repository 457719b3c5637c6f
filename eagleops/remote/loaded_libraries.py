"""The CUDA and NCCL libraries that processes have really loaded, as their memory maps tell.

A package's version says what would be loaded; LD_LIBRARY_PATH, LD_PRELOAD or a copy in
another package decide what is. A library is read as a file, never loaded.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from eagleops.remote.context import Context

Facts = Dict[str, Any]

# NCCL with its network and tuner plugins, and what it stands on.
_LIBRARY = re.compile(
    r"lib(?P<name>nccl[\w-]*|cuda|cudart|cudnn|cublas|cublasLt|nvshmem_host|nvidia-ml)"
    r"\.so(?P<number>[.\d]*)\Z"
)
# Standing in NCCL's read-only data; its log's first line is made of it.
_NCCL_VERSION = re.compile(rb"NCCL version (\d+\.\d+\.\d+[\w.]*)(\+cuda[\d.]+)?")
_NEEDLE = b"NCCL version "
CHUNK_BYTES = 8 * 1024 * 1024
OVERLAP_BYTES = 64
DELETED = " (deleted)"


class Mapped(NamedTuple):
    """A file in a process's memory map.

    Attributes:
        inode: Of the file that was mapped; the name may be another file's by now.
        deleted: Whether the name is gone, or another file's.
    """

    path: str
    device: str
    inode: int
    deleted: bool


def parse_maps(text: str) -> List[Mapped]:
    """The files in ``/proc/PID/maps``, each once, in order."""
    found: Dict[Tuple[str, int, str], Mapped] = {}
    for line in text.splitlines():
        fields = line.split(None, 5)
        path = (fields[5:] or [""])[0]
        if not path.startswith("/"):
            continue
        # The kernel writes a line break in a name as \012, and nothing else so.
        path = path.replace("\\012", "\n")
        deleted = path.endswith(DELETED)
        path = path[: -len(DELETED)] if deleted else path
        inode = int(fields[4]) if fields[4].isdigit() else 0
        found.setdefault((fields[3], inode, path), Mapped(path, fields[3], inode, deleted))
    return list(found.values())


def loaded(context: Context, pids: Iterable[int]) -> Facts:
    """The libraries of a process tree.

    Returns:
        ``libraries`` (``name``, ``path``, ``version``, ``replaced``, ``pids``), and
        ``unreadable``: the PIDs whose maps this user may not read.
    """
    found: Dict[Tuple[str, int, str], Facts] = {}
    unreadable = []
    for pid in pids:
        context.check()
        text = _maps(pid)
        if text is None:
            unreadable.append(pid)
            continue
        for mapped in parse_maps(text):
            match = _LIBRARY.match(os.path.basename(mapped.path))
            if match is None:
                continue
            identity = (mapped.device, mapped.inode, mapped.path)
            if identity not in found:
                found[identity] = _described(context, pid, mapped, match)
            found[identity]["pids"].append(pid)
    libraries = sorted(found.values(), key=lambda one: (one["name"], one["path"]))
    return {"libraries": libraries, "unreadable": unreadable}


def nccl_version(context: Context, path: str) -> Optional[str]:
    """The version that stands in an NCCL library, for example ``2.28.9+cuda13.0``.

    Raises:
        OSError: if it cannot be read.
    """
    with open(path, "rb") as file:
        before = b""
        while True:
            context.check()
            chunk = file.read(CHUNK_BYTES)
            window = before + chunk
            match = _NCCL_VERSION.search(window) if _NEEDLE in window else None
            # One near the edge may go on behind it: it is found whole in the next window.
            whole = match and match.start() + OVERLAP_BYTES <= len(window)
            if match and (whole or len(chunk) < CHUNK_BYTES):
                return (match.group(1) + (match.group(2) or b"")).decode("ascii")
            if not chunk:
                return None
            before = window[-OVERLAP_BYTES:]


def _described(context: Context, pid: int, mapped: Mapped, match: "re.Match[str]") -> Facts:
    facts: Facts = {
        "name": match.group("name"),
        "path": mapped.path,
        "version": match.group("number").strip(".") or None,
        "replaced": mapped.deleted,
        "pids": [],
    }
    # As the process sees the name: it may live in another mount namespace.
    path = "/proc/{}/root{}".format(pid, mapped.path)
    if not os.path.exists(path):
        path = mapped.path
    try:
        facts["replaced"] = mapped.deleted or _is_another(os.stat(path), mapped)
        if facts["name"] == "nccl" and not facts["replaced"]:
            facts["version"] = nccl_version(context, path) or facts["version"]
    except OSError as error:
        facts["problem"] = error.strerror
    return facts


def _is_another(found: os.stat_result, mapped: Mapped) -> bool:
    """Whether the name is another file's by now.

    An overlay tells inodes of its own, beside a device of its own: then nothing can be said.
    """
    device = "{:02x}:{:02x}".format(os.major(found.st_dev), os.minor(found.st_dev))
    return device == mapped.device and found.st_ino != mapped.inode


def _maps(pid: int) -> Optional[str]:
    try:
        with open("/proc/{}/maps".format(pid), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return None
