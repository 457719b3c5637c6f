"""Lines out of a channel's stdout."""

from __future__ import annotations

from eagleops.errors import TimedOut
from eagleops.transport.base import Channel
from eagleops.transport.deadline import Deadline


class StreamEnded(Exception):
    """The channel's stdout ended before the line did."""


class LineReader:
    """Reads a channel's stdout line by line."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._buffer = bytearray()

    def line(self, silence_s: float) -> bytes:
        """The next line, without its end.

        Args:
            silence_s: How long nothing may come; a long line may take longer.

        Raises:
            StreamEnded: if stdout ended.
            TimedOut, LinkLost: as :meth:`Channel.recv`.
        """
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            self._fill(silence_s)
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def skip_past(self, marker: bytes, deadline: Deadline) -> None:
        """Passes over everything up to ``marker``, and over the marker.

        Raises:
            StreamEnded, TimedOut, LinkLost: as :meth:`line`; TimedOut also where there is no
                end of other output.
        """
        while (at := self._buffer.find(marker)) < 0:
            del self._buffer[: -len(marker)]  # the marker may have begun
            if deadline.passed:
                raise TimedOut(problem="the answer did not begin", limit_s=deadline.limit_s or 0.0)
            self._fill(deadline.remaining_s())
        del self._buffer[: at + len(marker)]

    def _fill(self, timeout_s: float | None) -> None:
        data = self._channel.recv(timeout_s)
        if not data:
            raise StreamEnded
        self._buffer += data
