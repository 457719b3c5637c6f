"""The night in one sentence: what a person reads before the coffee."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from eagleops.nights.fault import Fault
from eagleops.render.nightly.tonight import ENDINGS
from eagleops.render.nightly.words import counted, listed
from eagleops.workflows.nightly.report import NightReport

Tone = Literal["good", "warning", "bad"]
# More checks, or more hosts, are counted.
_MOST_NAMES = 4


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
    sentence = " ".join((ENDINGS.get(report.night.outcome, ""), *_sentences(report))).strip()
    counts = report.counts
    if counts["fail"] or report.exit_status == 1:
        return Headline("bad", "Not well.", sentence)
    if counts["warn"] or not report.ok:
        return Headline("warning", "Look at it." if not counts["warn"] else "Warnings.", sentence)
    return Headline("good", "All is well.", sentence)


def _sentences(report: NightReport) -> Iterator[str]:
    news = report.news
    new = (*news.began, *news.worsened, *news.events)
    if new:
        yield f"New: {_named(new)}."
    if news.ended:
        yield f"Over: {_named(news.ended)}."
    if not (new or news.ended):
        yield "Nothing is new."
    if news.standing:
        oldest = min(fault.began_utc for fault in news.standing)[:10]
        since = "since" if len(news.standing) == 1 else "the oldest since"
        yield f"Still there: {_named(news.standing)}, {since} {oldest}."
    yield _looked_at(report)


def _looked_at(report: NightReport) -> str:
    counts = report.counts
    made = sum(counts.values()) - counts["skip"]
    where = counted(len(report.night.hosts), "host")
    told = f"{counts['pass']:,} of {counted(made, 'check')} on {where} passed"
    skipped = f", {counts['skip']:,} could not be made" if counts["skip"] else ""
    return f"{told}{skipped}."


def _named(faults: Sequence[Fault]) -> str:
    """The checks by host, as far as a sentence holds them."""
    by_host: dict[str, list[str]] = {}
    for fault in faults:
        by_host.setdefault(fault.host, []).append(fault.check)
    if len(faults) > _MOST_NAMES:
        hosts = list(by_host)
        on = listed(hosts) if len(hosts) <= _MOST_NAMES else counted(len(hosts), "host")
        return f"{counted(len(faults), 'fault')} on {on}"
    return listed([f"{listed(checks)} on {host}" for host, checks in by_host.items()])
