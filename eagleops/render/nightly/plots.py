"""The history of a figure, drawn: its level, its band, its changes, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from statistics import median
from typing import Any

from eagleops.comparison.loading import load
from eagleops.drift import wording
from eagleops.drift.metrics import METRICS
from eagleops.phrases import counted
from eagleops.render.page.drawing import GRID, INK, MUTED, WARNING, Plot, colour, figure, svg
from eagleops.workflows.trend import TrendReport

# Inches: on a phone, letters of 10 points are then still read.
WIDTH, HEIGHT = 5.0, 2.7
# Of the points' height: room above them for the words of each change.
_HEAD = 0.22
_SERIES = 1
# What is shown before and after the only point of a history.
_AROUND = timedelta(days=2)


def trend_plot(trend: TrendReport, name: str) -> Plot | None:
    """A figure's history; None where it has no point.

    Args:
        trend: What is drawn.
        name: Of its own in the page.
    """
    series = trend.series
    if not series.points:
        return None
    metric = METRICS[series.metric]
    with figure(WIDTH, HEIGHT) as drawn:
        axes = drawn.subplots()
        _levels(axes, trend)
        _points(axes, trend)
        _changes(axes, trend)
        _times(axes, trend)
        axes.set_ylabel(series.unit or metric.words)
        title = f"{metric.words.capitalize()} of {series.profile} on {series.host}"
        return svg(drawn, name, title, ". ".join(_words(trend)) + ".")


def _times(axes: Any, trend: TrendReport) -> None:
    dates = load("matplotlib.dates")
    # At least three would leave spans such as 65 hours without a step: too many hours for
    # six ticks, and too few days.
    locator = dates.AutoDateLocator(minticks=2, maxticks=6)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    axes.grid(axis="x", visible=False)
    moments = [point.at for point in trend.series.points]
    if min(moments) == max(moments):
        # Around one moment Matplotlib would show four years, and nobody the night in them.
        axes.set_xlim(moments[0] - _AROUND, moments[0] + _AROUND)


def _points(axes: Any, trend: TrendReport) -> None:
    series = trend.series
    counted_ = series.counted
    left_out = [point for point in series.points if point.excluded]
    shade = colour(_SERIES)
    style = {"linestyle": "none", "marker": "o", "markersize": 4}
    axes.plot([p.at for p in counted_], [p.value for p in counted_], color=shade, **style)
    axes.plot(
        [p.at for p in left_out],
        [p.value for p in left_out],
        linestyle="none",
        marker="x",
        markersize=7,
        markeredgewidth=2,
        color=WARNING,
    )
    latest = trend.drift.latest
    if latest is not None:
        ring = {"linestyle": "none", "marker": "o", "markersize": 11, "fillstyle": "none"}
        axes.plot(latest.at, latest.value, color=INK, **ring)


def _levels(axes: Any, trend: TrendReport) -> None:
    """The level of each stretch between changes, and the band of the last one."""
    points = trend.series.counted
    drift = trend.drift
    if drift.level is None:
        return
    starts = [points[0].at, *(change.after.at for change in drift.changes)]
    ends = [*(change.before.at for change in drift.changes), points[-1].at]
    for start, end in zip(starts, ends, strict=True):
        values = [point.value for point in points if start <= point.at <= end]
        if values:
            axes.hlines(median(values), start, end, color=INK, linewidth=1.4)
    if drift.low is not None and drift.high is not None:
        axes.fill_between(
            [starts[-1], ends[-1]], drift.low, drift.high, color=GRID, linewidth=0, zorder=0
        )


def _changes(axes: Any, trend: TrendReport) -> None:
    """Each change as a line where it lies, its size and date above; the later the lower."""
    changes = trend.drift.changes
    axes.margins(x=0.03, y=0.1)
    low, high = _scale(trend, *axes.get_ylim())
    left, right = axes.get_xlim()
    head = _HEAD * (high - low)
    top = high + head * len(changes)
    axes.set_ylim(low, top)
    number = load("matplotlib.dates").date2num
    for place, change in enumerate(changes):
        at = (number(change.before.at) + number(change.after.at)) / 2
        axes.axvline(at, color=MUTED, linewidth=1.2, linestyle="--")
        late = at - left > (right - left) / 2
        axes.annotate(
            f"{change.change_pct:+.1f} %, {wording.when(change)}",
            (at, top - place * head),
            xytext=(-4 if late else 4, -2),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontweight="bold",
        )


def _scale(trend: TrendReport, low: float, high: float) -> tuple[float, float]:
    """At least as much as twice what counts: chance does not fill the plot."""
    middle = (low + high) / 2
    half = max((high - low) / 2, 2 * middle * trend.drift.smallest_pct / 100)
    return middle - half, middle + half


def _words(trend: TrendReport) -> Iterator[str]:
    series, drift = trend.series, trend.drift
    show = METRICS[series.metric].show
    first, last = series.points[0], series.points[-1]
    yield f"{counted(len(series.points), 'run')}, {first.at_utc[:10]} to {last.at_utc[:10]}"
    if drift.level is not None:
        yield f"the level now is {show(drift.level)}"
    for change in drift.changes:
        yield f"changed by {change.change_pct:+.1f} % {wording.dated(change)}"
    for point in series.points:
        if point.excluded:
            yield f"left out on {point.at_utc[:10]}: {point.excluded}"
