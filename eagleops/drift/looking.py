"""What a series says by itself, and what was told of it in the nights before. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

import attrs

from eagleops.drift.change import ChangePoint
from eagleops.drift.levels import KEPT, Level, holds, levels, noise
from eagleops.drift.metrics import Metric
from eagleops.drift.series import Point

# Fewer points have no two levels of three, and no spread that could be called usual.
SHORTEST = 6
# What was told longer ago, and has not been so since, is history.
NIGHTS_BACK = 60


@attrs.frozen
class Look:
    """What a series says by itself.

    Attributes:
        now: Where it stands.
        accepted: The best level that was accepted.
        worse: Whether ``now`` is worse than that by a change that counts.
        nearly: Whether it still is by a third less.
    """

    sigma: float
    now: Level
    accepted: float
    changes: tuple[ChangePoint, ...]
    worse: bool
    nearly: bool

    @property
    def since(self) -> ChangePoint | None:
        """The last change for the worse: what came after it did not make up for it."""
        return next((change for change in reversed(self.changes) if change.worse), None)


def look(
    points: Sequence[Point], metric: Metric, smallest_pct: float, since: datetime | None
) -> Look:
    """Looks at points that count.

    Args:
        points: The oldest first; at least one.
        metric: What they are.
        smallest_pct: The smallest change that counts, in percent.
        since: What stood before it is not what the level is held to; None for all.
    """
    values = [point.value for point in points]
    sigma = noise(values, smallest_pct)
    found = levels(values, sigma)
    now, accepted = found[-1], _accepted(points, found, metric, since)
    worse = metric.is_worse(now.value, accepted)
    apart = abs(math.log(now.value / accepted))
    return Look(
        sigma,
        now,
        accepted,
        _changes(points, found, metric, smallest_pct),
        worse and holds(accepted, values[now.begin :], smallest_pct),
        worse and apart >= KEPT * math.log1p(smallest_pct / 100),
    )


def told_before(
    view: Look,
    points: Sequence[Point],
    metric: Metric,
    smallest_pct: float,
    since: datetime | None,
) -> Look | None:
    """The look by which the figure is worse: tonight's, or that of the night that told it.

    Where a figure creeps, a night more may show one level where there were two. What was told is
    not taken back for that, as long as the figure has not come back by a third.

    Args:
        view: Tonight's.
        points: As :func:`look`, and so the others.
        metric: What they are.
        smallest_pct: The smallest change that counts, in percent.
        since: What stood before it is not what the level is held to; None for all.
    """
    oldest = max(SHORTEST, len(points) - NIGHTS_BACK)
    for upto in range(len(points) - 1, oldest - 1, -1):
        if view.worse or not view.nearly:
            break
        view = look(points[:upto], metric, smallest_pct, since)
    return view if view.worse else None


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
        stretch = [point.value for point in points[new.begin : new.end]]
        if not holds(found[apart].value, stretch, smallest_pct):
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
