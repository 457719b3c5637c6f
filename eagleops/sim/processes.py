"""The stand-in engines' process trees."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Every process below one, its children first."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    below = children.get(pid, [])
    for child in below:
        below.extend(children.get(child, []))
    return below


def kill_descendants() -> None:
    """Kills every process below this one, and waits for its own children."""
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, 0):
            pass


class SignalPipe:
    """Signals as bytes to be read: the main thread waits for them beside other things.

    The interpreter writes them from whatever thread the kernel picks; a handler in Python
    would only run once the main thread has come back from its wait.
    """

    def __init__(self, *signals: signal.Signals) -> None:
        self.reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, lambda *_: None)

    def read(self) -> Iterator[signal.Signals]:
        """The signals that came since the last call."""
        with contextlib.suppress(BlockingIOError):
            yield from map(signal.Signals, os.read(self.reader, 4096))
