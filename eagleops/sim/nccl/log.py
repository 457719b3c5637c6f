"""NCCL's log: which lines are written, where, and how each begins."""

from __future__ import annotations

import os
import time
from typing import IO

from eagleops.sim.nccl.variables import text

_LEVELS = {"VERSION": 1, "WARN": 2, "INFO": 3, "ABORT": 4, "TRACE": 5}
_DEFAULT_SUBSYSTEMS = frozenset({"INIT", "BOOTSTRAP", "ENV"})
_SUBSYSTEMS = frozenset(
    {
        *("INIT", "COLL", "P2P", "SHM", "NET", "GRAPH", "TUNING", "ENV", "ALLOC", "CALL"),
        *("PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS"),
    }
)


def subsystems(value: str | None) -> frozenset[str]:
    """The subsystems that NCCL_DEBUG_SUBSYS lets speak."""
    if value is None:
        return _DEFAULT_SUBSYSTEMS
    named = frozenset(word.upper() for word in value.lstrip("^").split(","))
    if "ALL" in named:
        named = _SUBSYSTEMS
    return _SUBSYSTEMS - named if value.startswith("^") else named & _SUBSYSTEMS


def file_name(pattern: str, host: str, pid: int) -> str:
    """NCCL_DEBUG_FILE with ``%h``, ``%p`` and ``%%`` put in; any other ``%x`` stays."""
    parts = {"%": "%", "h": host, "p": str(pid)}
    out, rest = "", pattern
    while rest:
        before, percent, rest = rest.partition("%")
        out += before
        if percent:
            out += parts.get(rest[:1], f"%{rest[:1]}")
            rest = rest[1:]
    return out


class Log:
    """One process's log.

    Args:
        device: Index of its GPU among those it sees.
    """

    def __init__(self, device: int) -> None:
        self.level = _LEVELS.get((text("NCCL_DEBUG") or "").upper(), 0)
        self._subsystems = subsystems(text("NCCL_DEBUG_SUBSYS"))
        self._device = device
        self._host = os.uname().nodename.partition(".")[0]
        self._file: IO[bytes] | None = None
        pattern = text("NCCL_DEBUG_FILE")
        if pattern and self.level > _LEVELS["VERSION"]:
            try:
                self._file = open(file_name(pattern, self._host, os.getpid()), "wb", 0)  # noqa: SIM115
            except OSError:  # silently to stdout, as the real one
                self._file = None

    def tell(self, subsystem: str, line: str, thread: int = 0) -> None:
        """A line for those who asked for INFO and for this subsystem (``ALL``: for any).

        Args:
            subsystem: One name, or several with ``|``.
            line: What comes behind the prefix; it may have several lines.
            thread: Offset of the thread's id to the main one's.
        """
        wanted = subsystem == "ALL" or self._subsystems & set(subsystem.split("|"))
        if self.level >= _LEVELS["INFO"] and wanted:
            self._write(f"{self._prefix(thread)} NCCL INFO {line}\n")

    def complain(self, place: str, line: str) -> None:
        """A warning, with an empty line before it and the time."""
        if self.level >= _LEVELS["WARN"]:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            self._write(f"\n[{now}] {self._prefix(0)} {place} NCCL WARN {line}\n")

    def version(self, line: str) -> None:
        """The version: bare for those who asked for little, a line among others else."""
        if self.level >= _LEVELS["INFO"]:
            self._write(f"{self._prefix(0)} NCCL INFO {line}\n")
        elif self.level:
            self._write(f"{line}\n")

    def _prefix(self, thread: int) -> str:
        pid = os.getpid()
        return f"{self._host}:{pid}:{pid + thread} [{self._device}]"

    def _write(self, chunk: str) -> None:
        data = chunk.encode("utf-8", "surrogateescape")
        if self._file is None:
            os.write(1, data)
        else:
            self._file.write(data)
