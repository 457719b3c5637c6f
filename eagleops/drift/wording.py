"""What a judgement says, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.drift.change import ChangePoint
from eagleops.drift.metrics import metric_of
from eagleops.drift.series import Point

if TYPE_CHECKING:
    from eagleops.drift.judging import Drift


def verdict(drift: Drift) -> str:
    """A judgement in a sentence or two."""
    metric = metric_of(drift.metric)
    if drift.level is None:
        counts = "one run counts" if drift.counted == 1 else f"{drift.counted or 'no'} runs count"
        return f"{metric.words.capitalize()}: {counts}, too few to tell a change from chance."
    told = [_level(drift)]
    if drift.latest is not None and drift.latest.excluded:
        told.append(f"The latest run does not count: {drift.latest.excluded}.")
    elif drift.latest_unusual:
        told.append(_unusual(drift))
    return " ".join(told)


def date(point: Point) -> str:
    """The day of a point, UTC."""
    return point.at_utc[:10]


def when(change: ChangePoint) -> str:
    """When a level changed: a day, or between which days."""
    first, last = date(change.earliest), date(change.latest)
    return first if first == last else f"{first} to {last}"


def dated(change: ChangePoint) -> str:
    """When a level changed, for within a sentence."""
    first, last = date(change.earliest), date(change.latest)
    return f"on {first}" if first == last else f"between {first} and {last}"


def _level(drift: Drift) -> str:
    metric = metric_of(drift.metric)
    stands = metric.show(drift.level or 0.0)
    head = metric.words.capitalize()
    if drift.state == "changed" and drift.since is not None:
        dates = " and ".join(dated(change) for change in drift.changes if change.worse)
        return (
            f"{head} is worse than it was: {stands}, {drift.change_pct:+.1f} % against "
            f"{metric.show(drift.accepted or 0.0)}; it changed {dates}."
        )
    if not drift.changes:
        return f"{head} is steady at {stands}."
    last = drift.changes[-1]
    manner = "worse" if last.worse else "better"
    return f"{head} stands at {stands}; it got {manner} {dated(last)} ({last.change_pct:+.1f} %)."


def _unusual(drift: Drift) -> str:
    metric = metric_of(drift.metric)
    if drift.latest is None or drift.low is None or drift.high is None:
        return ""
    band = f"{drift.low:.{metric.digits}f} to {metric.show(drift.high)}"
    side = "worse" if drift.latest_worse else "better"
    return (
        f"The latest run is unusual, on the {side} side: {metric.show(drift.latest.value)}, "
        f"usual are {band}. Later runs tell whether it stays so."
    )
