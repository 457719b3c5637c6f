"""A figure of one profile on one host over time, and which of its points count. Pure.

A point is left out of every judgement, and shown with the reason, where its figure says nothing
of the software:

* a GPU was slowed down for more than :data:`THROTTLED_PCT` of the measurement, unless that is
  how the box always is: a power limit that holds in most runs is part of its level;
* the environment of its workers was proved wrong or missing;
* it was measured by another prompt or another number of tokens than the latest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from eagleops.comparison.trial import environment_faults
from eagleops.drift.metrics import Metric, metric_of
from eagleops.ledger import Run
from eagleops.measuring.findings import reason_words

THROTTLED_PCT = 1.0
# A reason that holds in more than half of so many runs is how the box is.
USUAL_RUNS = 6

Slowdown = tuple[int, str, float]
"""A GPU's index, a reason, and for which share of the time it held."""


@attrs.frozen
class Point:
    """One run's figure.

    Attributes:
        at_utc: When the run began, RFC 3339.
        excluded: Why it does not count, in words; empty where it does.
    """

    at_utc: str
    value: float
    run_id: int | None = None
    excluded: str = ""

    @property
    def at(self) -> datetime:
        """:attr:`at_utc` as a time."""
        return _moment(self.at_utc)

    def to_dict(self) -> dict[str, Any]:
        """The point as JSON."""
        return {**attrs.asdict(self), "excluded": self.excluded or None}


@attrs.frozen
class Series:
    """One metric of one profile on one host.

    Attributes:
        points: The oldest first.
    """

    host: str
    profile: str
    metric: str
    unit: str
    points: tuple[Point, ...] = ()

    @property
    def counted(self) -> tuple[Point, ...]:
        """The points that count."""
        return tuple(point for point in self.points if not point.excluded)

    @property
    def latest(self) -> Point | None:
        """The last point, whether it counts or not; None where there is none."""
        return self.points[-1] if self.points else None


def series_of(
    runs: Iterable[Run], metric: str = "tok_s", *, throttled_pct: float = THROTTLED_PCT
) -> Series:
    """The series of a metric over runs of one profile on one host.

    Args:
        runs: In any order; those without that figure are no points. Of their parts ``bench``,
            ``launch``, ``environment`` and ``telemetry`` are read.
        metric: One of :data:`eagleops.drift.metrics.METRICS`.
        throttled_pct: For how much of a measurement's time a GPU may be slowed down.

    Raises:
        UsageError: if there is no such metric.
    """
    followed = metric_of(metric)
    figures = [(run, value) for run in runs if (value := followed.value(run)) is not None]
    if not figures:
        return Series("", "", metric, followed.unit)
    figures.sort(key=lambda one: (_moment(one[0].header.created_utc), one[0].header.id or 0))
    measured = [run for run, _ in figures]
    slowed = [_slowdowns(run, throttled_pct) if followed.heat else () for run in measured]
    usual = _usual(slowed)
    latest = measured[-1]
    points = []
    for (run, value), slow in zip(figures, slowed, strict=True):
        why = _why(run, followed, slow, latest, usual)
        points.append(Point(run.header.created_utc, value, run.header.id, why))
    return Series(latest.header.host, latest.header.profile, metric, followed.unit, tuple(points))


def _why(
    run: Run, metric: Metric, slow: Sequence[Slowdown], latest: Run, usual: frozenset[str]
) -> str:
    """Why a run does not count; empty where it does."""
    faults = environment_faults(run.part("environment"))
    if faults:
        return "; ".join(faults)
    odd = [one for one in slow if one[1] not in usual]
    if odd:
        gpu, reason, share = max(odd, key=lambda one: one[2])
        named = f"GPU {gpu} throttled ({reason_words(reason)})" if reason else "throttled"
        return f"{named} for {100 * share:.0f} % of the measurement"
    return _other_conditions(run, latest) if metric.asked else ""


def _other_conditions(run: Run, latest: Run) -> str:
    was, now = _conditions(run), _conditions(latest)
    other = [
        f"{name} {was[name]}, not {now[name]}"
        for name in ("prompt", "tokens")
        if was.get(name) is not None and now.get(name) is not None and was[name] != now[name]
    ]
    return f"measured otherwise: {', '.join(other)}" if other else ""


def _conditions(run: Run) -> Mapping[str, Any]:
    bench = run.part("bench")
    told = bench.get("conditions") if isinstance(bench, Mapping) else None
    return told if isinstance(told, Mapping) else {}


def _slowdowns(run: Run, limit_pct: float) -> tuple[Slowdown, ...]:
    """What slowed a GPU down for longer than ``limit_pct`` of the measurement."""
    bench = run.part("bench")
    bench = bench if isinstance(bench, Mapping) else {}
    telemetry = run.part("telemetry")
    if not isinstance(telemetry, Mapping):
        throttled, runs = bench.get("throttled_runs") or 0, bench.get("runs") or 0
        share = throttled / runs if runs else 0.0
        return ((0, "", share),) if 100 * share > limit_pct else ()
    return tuple(
        (int(gpu.get("index", 0)), str(reason), float(share))
        for gpu in telemetry.get("gpus") or ()
        for reason, share in (gpu.get("throttled") or {}).items()
        if 100 * share > limit_pct
    )


def _usual(slowed: Sequence[Sequence[Slowdown]]) -> frozenset[str]:
    """The reasons that hold in most runs: they are how the box is."""
    if len(slowed) < USUAL_RUNS:
        return frozenset()
    seen = Counter(reason for slow in slowed for reason in {reason for _, reason, _ in slow})
    return frozenset(reason for reason, count in seen.items() if 2 * count > len(slowed))


def _moment(at_utc: str) -> datetime:
    return datetime.fromisoformat(at_utc.replace("Z", "+00:00"))
