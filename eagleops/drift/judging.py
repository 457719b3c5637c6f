"""Whether a figure has changed, since when, and whether that is for the worse now. Pure.

A change is told when enough later points confirm it; one odd point is ``unusual`` and no more.
A fault is only what is worse **now** than the best level that was accepted: a level that
recovers ends it, and an improvement is told and is none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import attrs

from eagleops.comparison.loading import load
from eagleops.drift import wording
from eagleops.drift.change import ChangePoint
from eagleops.drift.looking import SHORTEST, Look, look, told_before
from eagleops.drift.metrics import metric_of
from eagleops.drift.series import Point, Series

__all__ = ["SMALLEST_PCT", "ChangePoint", "Drift", "judge"]

State = Literal["steady", "unusual", "changed", "too_short"]

SMALLEST_PCT = 3.0
# Two nights of a thousand are outside the band by chance.
UNUSUAL = 0.002


@attrs.frozen(kw_only=True)
class Drift:
    """What a series says.

    Attributes:
        state: ``changed``: the level is worse now than it was. ``unusual``: the latest point is
            outside the band, and nothing confirms it. ``too_short``: no judgement is possible.
        level: Where the figure stands now: the median of its last level; None if too short.
        low, high: The band in which the latest point is usual; None if too short.
        noise_pct: What neighbouring points differ by, as a standard deviation.
        accepted: The best level that was accepted, by which ``changed`` is told.
        changes: Each change of level, the oldest first; also those that have ended.
        since: The change from which on it is worse; None unless ``changed``.
        latest: The last point, whether it counts or not; None for an empty series.
        latest_unusual: Whether it counts, and is outside the band.
        smallest_pct: The smallest change that counts.
        words: The verdict in a sentence or two.
    """

    metric: str
    state: State
    level: float | None = None
    low: float | None = None
    high: float | None = None
    noise_pct: float | None = None
    accepted: float | None = None
    changes: tuple[ChangePoint, ...] = ()
    since: ChangePoint | None = None
    latest: Point | None = None
    latest_unusual: bool = False
    counted: int = 0
    smallest_pct: float = SMALLEST_PCT

    @property
    def ok(self) -> bool:
        """Whether the level is not worse than it was."""
        return self.state != "changed"

    @property
    def change_pct(self) -> float | None:
        """The level now against the best one that was accepted, in percent."""
        if self.level is None or not self.accepted:
            return None
        return 100 * (self.level / self.accepted - 1)

    @property
    def limit(self) -> float | None:
        """What the figure is held to, on its worse side; None if it is too short.

        Where the level is worse than it was, the best accepted one less the smallest change that
        counts; else the band's edge.
        """
        is_higher_better = metric_of(self.metric).better == "higher"
        if self.state != "changed" or not self.accepted:
            return self.low if is_higher_better else self.high
        smallest = 1 + self.smallest_pct / 100
        return self.accepted / smallest if is_higher_better else self.accepted * smallest

    @property
    def latest_worse(self) -> bool:
        """Whether the latest point is unusual, and on the worse side of the band."""
        if not self.latest_unusual or self.latest is None or self.level is None:
            return False
        return metric_of(self.metric).is_worse(self.latest.value, self.level)

    @property
    def words(self) -> str:
        """The verdict in a sentence or two."""
        return wording.verdict(self)

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return {
            "state": self.state,
            "level": self.level,
            "low": self.low,
            "high": self.high,
            "noise_pct": self.noise_pct,
            "accepted": self.accepted,
            "change_pct": self.change_pct,
            "smallest_pct": self.smallest_pct,
            "counted": self.counted,
            "latest": None if self.latest is None else self.latest.to_dict(),
            "latest_unusual": self.latest_unusual,
            "latest_worse": self.latest_worse,
            "changes": [change.to_dict() for change in self.changes],
            "since": None if self.since is None else self.since.to_dict(),
            "words": self.words,
        }


def judge(
    series: Series,
    *,
    smallest_pct: float = SMALLEST_PCT,
    accepted_since: datetime | None = None,
) -> Drift:
    """Judges a series.

    Args:
        series: Points that do not count are passed over.
        smallest_pct: The smallest change that counts, in percent.
        accepted_since: The level of this time is accepted, and so is what came before: only
            what is worse than this level, or than a later one, is ``changed``.

    Raises:
        UsageError: if there is no such metric, or ruptures or scipy is not installed.
    """
    metric = metric_of(series.metric)
    points = series.counted
    if len(points) < SHORTEST:
        return Drift(
            metric=metric.name,
            state="too_short",
            latest=series.latest,
            counted=len(points),
            smallest_pct=smallest_pct,
        )
    view = look(points, metric, smallest_pct, accepted_since)
    told = told_before(view, points, metric, smallest_pct, accepted_since)
    latest_counts = series.latest is points[-1]
    low, high = _band(points, view, smallest_pct, with_latest=not latest_counts)
    unusual = latest_counts and not low <= points[-1].value <= high
    changes, since = _with_told(view, told)
    return Drift(
        metric=metric.name,
        state="changed" if told is not None else "unusual" if unusual else "steady",
        level=view.now.value,
        low=low,
        high=high,
        noise_pct=100 * view.sigma,
        accepted=view.accepted,
        changes=changes,
        since=since,
        latest=series.latest,
        latest_unusual=unusual,
        counted=len(points),
        smallest_pct=smallest_pct,
    )


def _with_told(view: Look, told: Look | None) -> tuple[tuple[ChangePoint, ...], ChangePoint | None]:
    """Tonight's changes with the one that was told, and that one."""
    since = None if told is None else told.since
    if since is None:
        return view.changes, None
    for change in view.changes:
        if change.after == since.after:
            return view.changes, change
    return tuple(sorted((*view.changes, since), key=lambda one: one.after.at)), since


def _band(
    points: Sequence[Point], view: Look, smallest_pct: float, *, with_latest: bool
) -> tuple[float, float]:
    """What is usual for the latest point, by the level's points without it.

    The interval in which one more normal value is expected (a prediction interval of Student's
    t), about a median whose variance is pi / 2 of a mean's; never narrower than what counts.
    """
    stretch = [point.value for point in points[view.now.begin :]]
    if not with_latest:
        stretch.pop()
    middle = statistics.median(stretch)
    quantile = float(load("scipy.stats").t.ppf(1 - UNUSUAL / 2, max(2, len(points) - 2)))
    spread = quantile * view.sigma * math.sqrt(1 + math.pi / 2 / len(stretch))
    half = max(spread, math.log1p(smallest_pct / 100))
    return middle * math.exp(-half), middle * math.exp(half)
