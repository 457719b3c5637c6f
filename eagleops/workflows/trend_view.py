"""What a trend looks like: a spark line, tables, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eagleops.drift import spark, wording
from eagleops.drift.series import Point
from eagleops.ledger.diff import cell
from eagleops.ledger.lines import named
from eagleops.view import Cell, Column, Table, Text, Tone, View

if TYPE_CHECKING:
    from eagleops.workflows.trend import Story, TrendReport

WIDTH = 78
MOST_CAUSES = 6
LATEST = 10
MOST_LEFT_OUT = 6
MARKS = f"{spark.CHANGE} a change, {spark.LEFT_OUT} left out"
TONES = {
    "steady": Tone.GOOD,
    "unusual": Tone.WARNING,
    "changed": Tone.BAD,
    "too_short": Tone.WARNING,
}


def view(report: TrendReport) -> View:
    """A trend for a terminal or a notebook."""
    causes = tuple(_causes(story) for story in report.stories)
    tables = [_line(report), _changes(report), *causes]
    if out := [point for point in report.series.points[:-LATEST] if point.excluded]:
        tables.append(_left_out(report, out))
    tables.append(_latest(report))
    notes = [Text(notice, Tone.WARNING) for notice in report.notices]
    if report.pin is not None:
        notes.append(Text(report.pin.words, Tone.GOOD if report.pin.ok else Tone.BAD))
    if report.report:
        notes.append(Text(f"Report: {report.report}"))
    return View(tuple(tables), Text(report.drift.words, TONES[report.drift.state]), tuple(notes))


def _line(report: TrendReport) -> Table:
    points, metric = report.series.points, report.metric
    counted = [point.value for point in report.series.counted] or [point.value for point in points]
    drawn = spark.spark(points, [change.after for change in report.drift.changes], WIDTH)
    lowest = f"{min(counted):.{metric.digits}f}"
    heading = f"{lowest} to {metric.show(max(counted))} ({MARKS})"
    runs = "one run" if len(points) == 1 else f"{len(points)} runs"
    span = f"{runs} since {wording.date(points[0])}"
    title = f"{report.profile} on {report.host}: {metric.words}, {span}"
    return Table((Column(heading),), ((drawn,),), title=title)


def _changes(report: TrendReport) -> Table:
    metric = report.metric
    columns = (
        Column("when"),
        Column("before", "right"),
        Column("after", "right"),
        Column("change", "right"),
        Column("first run", "right"),
        Column(""),
    )
    rows = tuple(
        (
            wording.when(change),
            f"{change.from_value:.{metric.digits}f}",
            f"{change.to_value:.{metric.digits}f}",
            f"{change.change_pct:+.1f} %",
            _number(change.after),
            Text("worse", Tone.BAD) if change.worse else Text("better", Tone.GOOD),
        )
        for change in report.drift.changes
    )
    return Table(columns, rows, title="Changes of level", empty="none")


def _causes(story: Story) -> Table:
    before, after = story.diff.before.id, story.diff.after.id
    shown = story.causes[:MOST_CAUSES]
    rows: list[tuple[Cell, ...]] = [
        (
            named(cause.what, cause.gpus),
            cell(cause.before),
            cell(cause.after),
            "" if number < story.lasting else Text("did not last", Tone.DIM),
        )
        for number, cause in enumerate(shown)
    ]
    if len(story.causes) > len(shown):
        more = len(story.causes) - len(shown)
        rows.append(
            (f"and {more} more: eagleops diff --run {after} --against {before}", "", "", "")
        )
    columns = (Column("what"), Column(f"run {before}"), Column(f"run {after}"), Column(""))
    title = f"What else changed then ({wording.when(story.change)})"
    return Table(columns, tuple(rows), title=title, empty="nothing that is recorded")


def _left_out(report: TrendReport, points: Sequence[Point]) -> Table:
    """Those before the latest; these stand among the latest themselves."""
    digits = report.metric.digits
    rows = [
        (_number(point), _began(point), f"{point.value:.{digits}f}", point.excluded)
        for point in points[-MOST_LEFT_OUT:]
    ]
    if len(points) > len(rows):
        rows.append((f"and {len(points) - len(rows)} more", "", "", "see --json"))
    columns = (
        Column("run", "right"),
        Column("began (UTC)", wrap=False),
        Column(report.series.unit or report.metric.words, "right"),
        Column("left out, because"),
    )
    return Table(columns, tuple(rows), title="Left out before the latest runs")


def _latest(report: TrendReport) -> Table:
    columns = (
        Column("run", "right"),
        Column("began (UTC)", wrap=False),
        Column(report.series.unit or report.metric.words, "right"),
        # Without a level there is nothing to hold a run against.
        Column("to the level" if report.drift.level else "", "right"),
        Column(""),
    )
    rows = tuple(_rows(report, report.series.points[-LATEST:]))
    return Table(columns, rows, title="Latest runs")


def _rows(report: TrendReport, points: Sequence[Point]) -> Iterator[tuple[Cell, ...]]:
    drift, digits = report.drift, report.metric.digits
    for point in points:
        apart = "" if not drift.level else f"{100 * (point.value / drift.level - 1):+.1f} %"
        note: Cell = ""
        if point.excluded:
            note = Text(f"left out: {point.excluded}", Tone.DIM)
        elif point is drift.latest and drift.latest_unusual:
            note = Text("unusual", Tone.WARNING)
        yield _number(point), _began(point), f"{point.value:.{digits}f}", apart, note


def _number(point: Point) -> str:
    return "" if point.run_id is None else str(point.run_id)


def _began(point: Point) -> str:
    return point.at_utc[:16].replace("T", " ")
