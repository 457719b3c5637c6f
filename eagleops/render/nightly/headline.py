"""The night in one sentence: what a person reads before the coffee."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs

from eagleops.nights.summary import named
from eagleops.phrases import counted
from eagleops.workflows.nightly.report import NightReport

Tone = Literal["good", "warning", "bad"]


@attrs.frozen
class Headline:
    """The verdict.

    Attributes:
        word: What the colour says.
        sentence: Why.
    """

    tone: Tone
    word: str
    sentence: str


def headline(report: NightReport) -> Headline:
    """What the night came to, in a sentence or two."""
    sentence = " ".join(_sentences(report))
    counts = report.counts
    if counts["fail"] or report.exit_status == 1:
        return Headline("bad", "Not well.", sentence)
    if counts["warn"] or not report.ok:
        return Headline("warning", "Look at it." if not counts["warn"] else "Warnings.", sentence)
    return Headline("good", "All is well.", sentence)


def _sentences(report: NightReport) -> Iterator[str]:
    news = report.news
    if report.night.cut_short:
        yield report.night.cut_short
    new = (*news.began, *news.worsened, *news.events)
    if new:
        yield f"New: {named(new)}."
    if news.ended:
        yield f"Over: {named(news.ended)}."
    if not (new or news.ended):
        yield "Nothing is new."
    if news.standing:
        oldest = min(fault.began_utc for fault in news.standing)[:10]
        since = "since" if len(news.standing) == 1 else "the oldest since"
        yield f"Still there: {named(news.standing)}, {since} {oldest}."
    yield _looked_at(report)


def _looked_at(report: NightReport) -> str:
    counts = report.counts
    made = sum(counts.values()) - counts["skip"]
    where = counted(len(report.night.hosts), "host")
    told = f"{counts['pass']:,} of {counted(made, 'check')} on {where} passed"
    skipped = f", {counts['skip']:,} could not be made" if counts["skip"] else ""
    return f"{told}{skipped}."
