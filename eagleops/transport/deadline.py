"""A point in time that several waits share."""

from __future__ import annotations

import time

import attrs


@attrs.frozen
class Deadline:
    """The end of a time limit.

    Attributes:
        limit_s: The limit that it was made from; None for no limit.
        at: On :func:`time.monotonic`'s clock.
    """

    limit_s: float | None
    at: float

    @classmethod
    def after(cls, limit_s: float | None) -> Deadline:
        """The deadline ``limit_s`` seconds from now."""
        return cls(limit_s, float("inf") if limit_s is None else time.monotonic() + limit_s)

    def remaining_s(self) -> float | None:
        """Seconds left, 0 once it has passed; None where there is no limit."""
        return None if self.limit_s is None else max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return time.monotonic() >= self.at

    def sooner(self, limit_s: float) -> Deadline:
        """This one, or the one ``limit_s`` from now, whichever comes first."""
        other = Deadline.after(limit_s)
        return other if other.at < self.at else self
