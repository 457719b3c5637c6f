"""A simple limit against one pinned run. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.drift.metrics import Metric, metric_of
from eagleops.drift.series import Point, Series

LIMIT_PCT = 5.0


@attrs.frozen(kw_only=True)
class Against:
    """The latest point that counts against a pinned one.

    Attributes:
        pinned: The run that it must keep up with.
        latest: None where no point counts.
        limit_pct: How much worse it may be, in percent.
        limit: The same in the metric's unit.
    """

    metric: str
    pinned: Point
    latest: Point | None
    limit_pct: float
    limit: float

    @property
    def change_pct(self) -> float | None:
        """From the pinned run, in percent; None where no point counts."""
        return None if self.latest is None else 100 * (self.latest.value / self.pinned.value - 1)

    @property
    def ok(self) -> bool:
        """Whether it keeps up; so it does as long as no point counts."""
        return self.latest is None or not self._followed.is_worse(self.latest.value, self.limit)

    @property
    def words(self) -> str:
        """The verdict in a sentence."""
        followed, named = self._followed, f"run {self.pinned.run_id}, which is pinned"
        pinned = followed.show(self.pinned.value)
        if self.latest is None or self.change_pct is None:
            return f"No run counts that could be held against {named} ({pinned})."
        seen = f"{followed.show(self.latest.value)}, {self.change_pct:+.1f} % against {named}"
        kept = "within" if self.ok else "beyond"
        return f"{seen} ({pinned}): {kept} the limit of {self.limit_pct:g} %."

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return {
            "ok": self.ok,
            "pinned": self.pinned.to_dict(),
            "latest": None if self.latest is None else self.latest.to_dict(),
            "limit_pct": self.limit_pct,
            "limit": self.limit,
            "change_pct": self.change_pct,
            "words": self.words,
        }

    @property
    def _followed(self) -> Metric:
        return metric_of(self.metric)


def against(series: Series, pinned: Point, limit_pct: float = LIMIT_PCT) -> Against:
    """Holds the latest point that counts against a pinned run.

    Args:
        series: Of one metric.
        pinned: The run that it must keep up with.
        limit_pct: How much worse it may be, in percent.

    Raises:
        UsageError: if there is no such metric.
    """
    metric = metric_of(series.metric)
    sign = -1 if metric.better == "higher" else 1
    return Against(
        metric=metric.name,
        pinned=pinned,
        latest=series.counted[-1] if series.counted else None,
        limit_pct=limit_pct,
        limit=pinned.value * (1 + sign * limit_pct / 100),
    )
