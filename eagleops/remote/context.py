"""What an operation is given: its options, its clock, and word that it was called off."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, Optional

from eagleops.remote.failure import Cancelled, Failure


class Context:
    """The surroundings of one running operation.

    Attributes:
        options: What the client said of this machine when the session began: see
            :data:`DEFAULT_OPTIONS`.
    """

    def __init__(self, options: Dict[str, Any], time_limit_s: Optional[float] = None) -> None:
        self.options = dict(DEFAULT_OPTIONS, **options)
        self._cancelled = threading.Event()
        self._deadline = None if time_limit_s is None else time.monotonic() + time_limit_s

    def cancel(self) -> None:
        """Calls the operation off; its next :meth:`sleep` or :meth:`check` raises."""
        self._cancelled.set()

    def remaining_s(self) -> float:
        """Seconds left of the request's time limit; infinite where it has none."""
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()

    def check(self) -> None:
        """Raises Cancelled if the operation was called off."""
        if self._cancelled.is_set():
            raise Cancelled

    def sleep(self, seconds: float) -> None:
        """Waits, but not past the time limit, and no longer than the client is there.

        Raises:
            Cancelled: if the operation was called off.
            Failure: ``time_limit`` if no time is left. An operation whose time-out is a
                result of its own asks :meth:`remaining_s` first.
        """
        remaining_s = self.remaining_s()
        if remaining_s <= 0:
            raise Failure("time_limit", "the operation's time limit ran out")
        if self._cancelled.wait(max(0.0, min(seconds, remaining_s))):
            raise Cancelled


# device_prefix: GPU device files begin with it; NVML: whether to ask the driver's library
# before nvidia-smi; path: PATH for what an operation looks up and for launched servers;
# state_home: folder of server states, None for $XDG_STATE_HOME or ~/.local/state; kernel_log:
# a file in the form of /dev/kmsg in its place, None for the kernel's own log.
DEFAULT_OPTIONS: Dict[str, Any] = {
    "device_prefix": "/dev/nvidia",
    "nvml": True,
    "path": None,
    "state_home": None,
    "kernel_log": None,
}
