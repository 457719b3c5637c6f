"""One process that is to be ended: it is never mistaken for a later one with its PID."""

from __future__ import annotations

import os
import signal
from typing import Any, Dict, Iterator, Optional

from eagleops.remote import pidfd, process_table, processes
from eagleops.remote.process_table import Stat


class Target:
    """A process that lived when it was aimed at.

    Args:
        seen: What /proc told of it after ``descriptor`` was opened.
        descriptor: Its pidfd; None where the kernel has none, and the start time is then
            compared before each signal instead.

    Attributes:
        last_signal: The name of the signal that it was sent last; empty before the first.
        refused: Whether this user may not signal it.
    """

    def __init__(self, seen: Stat, descriptor: Optional[int]) -> None:
        self.seen = seen
        self.last_signal = ""
        self.refused = False
        self._pidfd = descriptor

    @property
    def pid(self) -> int:
        """Its PID, here."""
        return self.seen.pid

    def gone(self) -> bool:
        """Whether every thread of it has ended; a zombie without threads holds nothing."""
        if self._pidfd is not None:
            return pidfd.ended(self._pidfd)
        return not self._is_same_and_alive(process_table.stat(self.pid))

    def send(self, number: signal.Signals) -> bool:
        """Sends it a signal; False if it had ended, or if that is not permitted."""
        try:
            if self._pidfd is not None:
                pidfd.send_signal(self._pidfd, number)
            elif self._is_same_and_alive(process_table.stat(self.pid)):
                os.kill(self.pid, number)
            else:
                return False
        except ProcessLookupError:
            return False
        except PermissionError:
            self.refused = True
            return False
        self.last_signal = number.name
        return True

    def wake(self) -> None:
        """Lets a stopped process go on: it would not heed SIGTERM before."""
        now = process_table.stat(self.pid)
        if now is not None and now.state == "T" and self._is_same_and_alive(now):
            last, _ = self.last_signal, self.send(signal.SIGCONT)
            self.last_signal = last

    def describe(self) -> Dict[str, Any]:
        """Why it is still there: ``pid``, ``state``, ``wchan``, ``reason``."""
        now = process_table.stat(self.pid)
        state, wchan = "" if now is None else now.state, None
        for thread in threads(self.pid):
            if thread.state == "D":
                state, wchan = "D", processes.wchan(self.pid, thread.pid)
                break
        reason = "not_permitted" if self.refused else "alive"
        if state == "D" and not self.refused:
            reason = "uninterruptible"
        return {"pid": self.pid, "state": state, "wchan": wchan, "reason": reason}

    def close(self) -> None:
        """Lets go of the pidfd."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    def _is_same_and_alive(self, now: Optional[Stat]) -> bool:
        return now is not None and now.start_ticks == self.seen.start_ticks and now.alive


def aim(pid: int, start_ticks: int) -> Optional[Target]:
    """The process that had ``pid`` and started at ``start_ticks``; None if it has ended.

    The start time is read after the pidfd was opened: one that matches then is that of the
    process behind the pidfd.
    """
    try:
        descriptor = pidfd.open_pidfd(pid)
    except ProcessLookupError:
        return None
    seen = process_table.stat(pid)
    if seen is None or seen.start_ticks != start_ticks or not seen.alive:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return Target(seen, descriptor)


def threads(pid: int) -> Iterator[Stat]:
    """The threads of ``pid`` that can still be seen."""
    folder = "/proc/{}/task".format(pid)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        thread = process_table.stat_of("{}/{}/stat".format(folder, name))
        if thread is not None:
            yield thread
