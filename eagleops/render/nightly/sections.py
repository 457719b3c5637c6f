"""What stands in the page, as plain data: what is new, what stands, and the evidence."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from eagleops.drift import wording
from eagleops.drift.series import Point
from eagleops.nights.fault import Fault
from eagleops.nights.faults import chronicle
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.render.nightly.commands import METRICS, commands, diff, line, trend_of
from eagleops.render.nightly.plots import trend_plot
from eagleops.render.nightly.strips import Strip, overall, strips
from eagleops.render.page.drawing import Plot
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.trend import Story, TrendReport

# Of what else changed with a figure, so many are named; ``eagleops diff`` has them all.
MOST_CAUSES = 4
MOST_ENDED = 30
MOST_LEFT_OUT = 4


@attrs.frozen
class Item:
    """A fault, with what a person does next.

    Attributes:
        news: ``new``, ``worse``, ``tonight`` for an event, ``ended``, or ``standing``.
        causes: What else changed, where a figure did.
        commands: What to type.
    """

    news: str
    fault: Fault
    causes: Causes | None = None
    commands: tuple[str, ...] = ()


@attrs.frozen
class Host:
    """One host: what was found tonight, and in the nights before.

    Attributes:
        bad: What is not well tonight, the worst first.
        skipped: What nobody could look at.
        passed: The rest.
        overall: The worst of each night.
        strips: Of the checks that were at fault in any of these nights.
        steady: The names of the others, and of each in how many nights it could not be made.
    """

    name: str
    bad: tuple[Finding, ...]
    skipped: tuple[Finding, ...]
    passed: tuple[Finding, ...]
    overall: Strip
    strips: tuple[Strip, ...]
    steady: tuple[tuple[str, int], ...]


@attrs.frozen
class Causes:
    """What else changed when a figure did.

    Attributes:
        when: The day of the change, or between which days it lies.
        causes: The likeliest first, in words; ``more`` of them are not shown.
        command: What shows all of them.
    """

    when: str
    causes: tuple[str, ...]
    more: int
    command: str


@attrs.frozen
class Figure:
    """One figure's history.

    Attributes:
        plot: None where there is nothing to draw.
        causes: For each change whose runs are in the ledger, the oldest first.
        left_out: The last points that do not count.
    """

    trend: TrendReport
    plot: Plot | None
    causes: tuple[Causes, ...]
    left_out: tuple[Point, ...]


@attrs.frozen
class Sections:
    """All of them."""

    new: tuple[Item, ...]
    ended: tuple[Item, ...]
    standing: tuple[Item, ...]
    hosts: tuple[Host, ...]
    moved: tuple[Figure, ...]
    calm: tuple[Figure, ...]
    past: tuple[Fault, ...]
    nights: tuple[Night, ...]


def sections_of(report: NightReport) -> Sections:
    """The sections of a report that is presentable."""
    nights = (*report.history, report.night)
    figures = [figure_of(trend, f"trend-{n}") for n, trend in enumerate(report.trends)]
    news = report.news
    told = (("new", news.began), ("worse", news.worsened), ("tonight", news.events))
    return Sections(
        new=tuple(_item(report, name, fault) for name, faults in told for fault in faults),
        ended=tuple(Item("ended", fault) for fault in news.ended),
        standing=tuple(_item(report, "standing", fault) for fault in news.standing),
        hosts=tuple(_host(nights, name, found) for name, found in report.by_host.items()),
        moved=tuple(one for one in figures if one.trend.drift.state in {"changed", "unusual"}),
        calm=tuple(one for one in figures if one.trend.drift.state not in {"changed", "unusual"}),
        past=tuple(_past(nights))[:MOST_ENDED],
        nights=nights,
    )


def _item(report: NightReport, news: str, fault: Fault) -> Item:
    found = report.night.finding(fault.host, fault.check)
    finding = found or Finding(fault.check, fault.host, fault.state, fault.message)
    causes = None
    if fault.kind in METRICS:
        trend = trend_of(report, fault.host, fault.subject, METRICS[fault.kind])
        if trend is not None and trend.stories:
            causes = _causes(trend.stories[-1])
    return Item(news, fault, causes, commands(report, finding))


def _host(nights: tuple[Night, ...], name: str, findings: tuple[Finding, ...]) -> Host:
    each = strips(nights, name)
    return Host(
        name,
        tuple(sorted((f for f in findings if f.bad), key=lambda f: f.state != "fail")),
        tuple(found for found in findings if found.state == "skip"),
        tuple(found for found in findings if found.state == "pass"),
        overall(nights, name),
        tuple(one for one in each if one.faulty),
        tuple((one.name, one.skipped) for one in each if not one.faulty),
    )


def figure_of(trend: TrendReport, name: str) -> Figure:
    """A history that is presentable, drawn; ``name`` is its own in the page."""
    left_out = tuple(point for point in trend.series.points if point.excluded)
    causes = tuple(map(_causes, trend.stories))
    return Figure(trend, trend_plot(trend, name), causes, left_out[-MOST_LEFT_OUT:])


def _causes(story: Story) -> Causes:
    shown = story.causes[:MOST_CAUSES]
    return Causes(
        wording.when(story.change),
        tuple(change.words for change in shown),
        len(story.causes) - len(shown),
        line(diff(story)),
    )


def _past(nights: tuple[Night, ...]) -> Iterator[Fault]:
    """The faults that are over, the last to end first."""
    over = [fault for _, news in chronicle(nights) for fault in (*news.ended, *news.events)]
    yield from sorted(over, key=lambda fault: fault.ended_utc or fault.seen_utc, reverse=True)
