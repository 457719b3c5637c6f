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
from eagleops.drift.levels import Level, levels, noise
from eagleops.drift.metrics import Metric, metric_of
from eagleops.drift.series import Point, Series

State = Literal["steady", "unusual", "changed", "too_short"]

SMALLEST_PCT = 3.0
# Fewer have no two levels of three, and no spread that could be called usual.
SHORTEST = 6
# Two nights of a thousand are outside the band by chance.
UNUSUAL = 0.002


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
    values = [point.value for point in points]
    sigma = noise(values, smallest_pct)
    found = levels(values, sigma)
    changes = _changes(points, found, metric, smallest_pct)
    accepted = _accepted(points, found, metric, accepted_since)
    now = found[-1].value
    worse = metric.is_worse(now, accepted) and _differ(accepted, now, smallest_pct)
    latest_counts = series.latest is points[-1]
    middle, half = _band(values, found[-1], sigma, smallest_pct, with_latest=not latest_counts)
    low, high = middle * math.exp(-half), middle * math.exp(half)
    unusual = latest_counts and not low <= values[-1] <= high
    return Drift(
        metric=metric.name,
        state="changed" if worse else "unusual" if unusual else "steady",
        level=now,
        low=low,
        high=high,
        noise_pct=100 * sigma,
        accepted=accepted,
        changes=changes,
        since=_since(changes) if worse else None,
        latest=series.latest,
        latest_unusual=unusual,
        counted=len(points),
        smallest_pct=smallest_pct,
    )


def _differ(one: float, other: float, smallest_pct: float) -> bool:
    return abs(math.log(other / one)) >= math.log1p(smallest_pct / 100)


def _changes(
    points: Sequence[Point], found: Sequence[Level], metric: Metric, smallest_pct: float
) -> tuple[ChangePoint, ...]:
    """The changes that count among the levels that were found.

    A level that differs by less from all since the last change is passed over; what creeps by
    several of them is told with the first of them as its earliest date.
    """
    changes: list[ChangePoint] = []
    since = [0]
    for index in range(1, len(found)):
        new = found[index]
        apart = max(since, key=lambda one: abs(math.log(new.value / found[one].value)))
        if not _differ(found[apart].value, new.value, smallest_pct):
            since.append(index)
            continue
        old = found[apart]
        changes.append(
            ChangePoint(
                before=points[new.begin - 1],
                after=points[new.begin],
                earliest=points[found[apart + 1].earliest],
                latest=points[new.latest],
                from_value=old.value,
                to_value=new.value,
                worse=metric.is_worse(new.value, old.value),
            )
        )
        since = [index]
    return tuple(changes)


def _accepted(
    points: Sequence[Point], found: Sequence[Level], metric: Metric, since: datetime | None
) -> float:
    """The best level that was accepted: of all, or of those at ``since`` and later."""
    standing = [
        level.value
        for level in found
        if since is None or points[level.end - 1].at >= since or level is found[-1]
    ]
    return max(standing) if metric.better == "higher" else min(standing)


def _since(changes: Sequence[ChangePoint]) -> ChangePoint | None:
    """The last change for the worse: what came after it did not make up for it."""
    return next((change for change in reversed(changes) if change.worse), None)


def _band(
    values: Sequence[float], last: Level, sigma: float, smallest_pct: float, *, with_latest: bool
) -> tuple[float, float]:
    """The middle and the half width (of logarithms) of what is usual, by the last level.

    The interval in which one more normal value is expected (a prediction interval of Student's
    t), about a median whose variance is pi / 2 of a mean's; never narrower than what counts.
    """
    stretch = values[last.begin : last.end if with_latest else last.end - 1]
    middle = statistics.median(stretch)
    quantile = load("scipy.stats").t.ppf(1 - UNUSUAL / 2, max(2, len(values) - 2))
    spread = sigma * math.sqrt(1 + math.pi / 2 / len(stretch))
    return middle, max(float(quantile) * spread, math.log1p(smallest_pct / 100))
