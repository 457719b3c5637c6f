"""Where a process's NCCL writes its log, and what stands in it.

NCCL writes to the file that ``NCCL_DEBUG_FILE`` names (``%p`` is the PID as the process itself
counts, ``%h`` the host name), and to stdout without one. A launched server's state folder
holds one file a process; a server that was started otherwise has its log wherever its stdout
went. What is no regular file (a pipe, a terminal) cannot be read a second time.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from eagleops.remote.nccl_log import Facts, parse

# NCCL names what it reads when it starts; a later communicator's lines are at the end.
HEAD_BYTES = 16 * 1024 * 1024
TAIL_BYTES = 2 * 1024 * 1024
STALE_S = 2.0
LEVELS_THAT_NAME_VARIABLES = ("INFO", "TRACE")
STDOUT = "its stdout"


class Log(NamedTuple):
    """What NCCL's log says of one process.

    Attributes:
        facts: None where nothing was found.
        path: The file, as the process names it.
        why: Why nothing was found; empty where something was.
        cut: Whether the middle of the file was left out, so that counts are too low.
    """

    facts: Optional[Facts]
    path: Optional[str]
    why: str
    cut: bool = False


class Writer(NamedTuple):
    """A process as its NCCL log knows it.

    Attributes:
        pid: As this machine counts.
        own_pid: As the process itself counts, which is what the log holds.
        started_s: When it started, as Unix time.
        variables: Its environment as far as it is known; None where it is not.
    """

    pid: int
    own_pid: int
    started_s: float
    variables: Optional[Mapping[str, str]]


class LogReader:
    """Reads the logs of many processes; a file that they share is read once."""

    def __init__(self, state_dir: Optional[str] = None) -> None:
        self._state_dir = state_dir
        self._files: Dict[Tuple[int, int], Tuple[Dict[int, Facts], bool]] = {}

    def of_process(self, writer: Writer) -> Log:
        """The log of one process, or why there is none."""
        problem, seen = "", None
        for path, place in self._candidates(writer):
            try:
                facts, cut = self._file(place, writer.started_s)
            except FileNotFoundError:
                continue
            except OSError as error:
                problem = problem or "{}: {}".format(path, os.strerror(error.errno or 0))
                continue
            except _NotALogError as not_one:
                problem = problem or "{} {}".format(path, not_one)
                continue
            if writer.own_pid in facts:
                return Log(facts[writer.own_pid], path, "", cut)
            seen = seen or path
        return Log(None, None, problem or _why(writer.variables, seen))

    def _candidates(self, writer: Writer) -> List[Tuple[str, str]]:
        """Pairs of a path as the process names it, and as this process reaches it."""
        found = []
        named = (writer.variables or {}).get("NCCL_DEBUG_FILE")
        if named:
            path = expand(named, writer.own_pid, os.uname().nodename)
            if path.startswith("/"):
                found.append((path, "/proc/{}/root{}".format(writer.pid, path)))
                found.append((path, path))
            else:
                found.append((path, "/proc/{}/cwd/{}".format(writer.pid, path)))
        if self._state_dir:
            own = os.path.join(self._state_dir, "nccl.{}.log".format(writer.own_pid))
            found.append((own, own))
        if writer.variables is None or writer.variables.get("NCCL_DEBUG"):
            found.append((STDOUT, "/proc/{}/fd/1".format(writer.pid)))
        return found

    def _file(self, place: str, started_s: float) -> Tuple[Dict[int, Facts], bool]:
        # O_NONBLOCK: opening a pipe must not wait for its other end.
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _NotALogError("is no regular file, so NCCL's lines cannot be read again")
            if status.st_mtime < started_s - STALE_S:
                raise _NotALogError("is older than the process")
            key = (status.st_dev, status.st_ino)
            if key not in self._files:
                self._files[key] = _parse(descriptor, status.st_size)
            return self._files[key]
        finally:
            os.close(descriptor)


class _NotALogError(Exception):
    """A file that does not hold the process's log, and why."""


def expand(pattern: str, pid: int, hostname: str) -> str:
    """``NCCL_DEBUG_FILE`` as NCCL expands it."""
    host = re.sub("[%/]", "-", hostname.partition(".")[0])
    meanings = {"%%": "%", "%h": host, "%p": str(pid)}
    return re.sub("%.", lambda match: meanings.get(match[0], match[0]), pattern)


def _parse(descriptor: int, size: int) -> Tuple[Dict[int, Facts], bool]:
    content = _read(descriptor, 0, HEAD_BYTES)
    cut = size > HEAD_BYTES
    if cut:
        start = max(HEAD_BYTES, size - TAIL_BYTES)
        content += b"\n" + _read(descriptor, start, TAIL_BYTES)
    if b"NCCL " not in content:
        return {}, cut
    return parse(content.decode("utf-8", "replace").splitlines()), cut


def _read(descriptor: int, start: int, limit: int) -> bytes:
    pieces: List[bytes] = []
    while limit > 0:
        piece = os.pread(descriptor, min(limit, 1024 * 1024), start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _why(variables: Optional[Mapping[str, str]], seen: Optional[str]) -> str:
    if seen and seen != STDOUT:
        return "{} holds no line of it".format(seen)
    if variables is None:
        return "its environment cannot be read, so it is not known where NCCL logs"
    level = variables.get("NCCL_DEBUG", "")
    if not level:
        return "NCCL_DEBUG is not set in it, so NCCL writes no log"
    if level.upper() not in LEVELS_THAT_NAME_VARIABLES:
        return "NCCL_DEBUG is {}, so NCCL's log names no variable".format(level)
    return "NCCL has logged nothing of it yet"
