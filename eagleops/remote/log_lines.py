"""A server's log as lines: bounded in length and number, whatever is written into it.

A progress bar's carriage returns end a line too; of several in one piece the last counts.
Secrets that an engine prints (``api_key='...'``) are left out.
"""

from __future__ import annotations

import os
from typing import List, Optional

from eagleops.remote.redact import text

MAX_LINE_BYTES = 4096
MAX_READ_BYTES = 1024 * 1024
# A reader that is further behind than this skips ahead, and says so.
MAX_BEHIND_BYTES = 4 * 1024 * 1024
SKIPPED = "[... {} bytes of the log skipped ...]"
CUT = " [... {} bytes cut]"


def readable(line: bytes) -> str:
    """A line as it may be shown: decoded, secrets left out."""
    return text(line.decode("utf-8", "replace"))


class LineSplitter:
    """Turns pieces of a byte stream into lines, still as bytes: few of many will be shown."""

    def __init__(self) -> None:
        self._pending = b""
        self._cut_bytes = 0
        self._bar = b""

    def feed(self, data: bytes) -> List[bytes]:
        """The lines that ``data`` completes."""
        lines = []
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._add(piece)
            lines.append(self._take())
        self._add(rest)
        if self._bar:
            lines.append(self._bar)
            self._bar = b""
        return lines

    def flush(self) -> List[bytes]:
        """What has come of a line that nothing ends."""
        return [self._take()] if self._pending.rstrip(b"\r") else []

    def _add(self, piece: bytes) -> None:
        line = self._pending.rstrip(b"\r")
        if piece and len(line) < len(self._pending):
            self._pending, piece = line, b"\r" + piece
        # A carriage return with something behind it: that overwrites what stood there.
        at = piece.rstrip(b"\r").rfind(b"\r")
        if at >= 0:
            done = (self._pending + piece[:at]).rstrip(b"\r")
            self._bar = done.rpartition(b"\r")[2][:MAX_LINE_BYTES] or self._bar
            self._pending, self._cut_bytes, piece = b"", 0, piece[at + 1 :]
        space = MAX_LINE_BYTES - len(self._pending)
        self._cut_bytes += max(0, len(piece) - space)
        self._pending += piece[:space]

    def _take(self) -> bytes:
        line = self._pending.rstrip(b"\r")
        if self._cut_bytes:
            line += CUT.format(self._cut_bytes).encode("ascii")
        self._pending, self._cut_bytes, self._bar = b"", 0, b""
        return line


class LogFollower:
    """Reads a log, and what is appended to it.

    Args:
        path: The log.
        backlog_bytes: How much of what stands there already is read too.
    """

    def __init__(self, path: str, backlog_bytes: int = MAX_READ_BYTES) -> None:
        self._path = path
        self._splitter = LineSplitter()
        self._offset = max(0, _size(path) - backlog_bytes)
        self._in_line = self._offset > 0

    def read(self) -> List[bytes]:
        """The next lines, of 1 MiB at most."""
        size = _size(self._path)
        lines: List[bytes] = []
        if size < self._offset:  # somebody has emptied it
            self._offset, self._in_line = 0, False
        if size - self._offset > MAX_BEHIND_BYTES:
            skipped = SKIPPED.format(size - MAX_READ_BYTES - self._offset)
            lines += [*self._splitter.flush(), skipped.encode("ascii")]
            self._offset, self._in_line = size - MAX_READ_BYTES, True
        data = _read(self._path, self._offset, MAX_READ_BYTES) if size > self._offset else b""
        self._offset += len(data)
        if self._in_line and data:
            # Begun in the middle: the rest of that line is left out, unless it has no end.
            _, newline, after = data.partition(b"\n")
            data = after if newline else data
            self._in_line = False
        return lines + self._splitter.feed(data)

    def catch_up(self) -> List[bytes]:
        """The lines up to the end of the file as it is now."""
        lines: List[bytes] = []
        end = _size(self._path)
        while True:
            before = self._offset
            lines += self.read()
            if self._offset == before or self._offset >= end:
                return lines

    def finish(self) -> List[bytes]:
        """:meth:`catch_up`, and what has come of a last line that nothing ends."""
        return self.catch_up() + self._splitter.flush()


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _read(path: str, offset: int, size: int) -> bytes:
    descriptor: Optional[int] = None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(descriptor, size, offset)
    except OSError:
        return b""
    finally:
        if descriptor is not None:
            os.close(descriptor)
