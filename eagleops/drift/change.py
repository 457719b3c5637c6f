"""One change of level: when, from what to what, and how sure its date is."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.drift.series import Point


@attrs.frozen(kw_only=True)
class ChangePoint:
    """One change of level.

    Attributes:
        before: The last point that counts of the level before; ``after`` the first of the new one.
        earliest, latest: Between which points the new level may have begun, both included. They
            are the same where one night stands out; further apart where the figure crept.
        from_value: The level before; ``to_value`` the one after.
        worse: Whether it is a change for the worse.
    """

    before: Point
    after: Point
    earliest: Point
    latest: Point
    from_value: float
    to_value: float
    worse: bool

    @property
    def change_pct(self) -> float:
        """From the level before, in percent."""
        return 100 * (self.to_value / self.from_value - 1)

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON."""
        points = ("before", "after", "earliest", "latest")
        return {
            **{name: getattr(self, name).to_dict() for name in points},
            "from_value": self.from_value,
            "to_value": self.to_value,
            "change_pct": self.change_pct,
            "worse": self.worse,
        }
