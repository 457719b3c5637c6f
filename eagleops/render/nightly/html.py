"""The night as one HTML page that needs nothing beside itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from eagleops._version import __version__
from eagleops.nights.finding import STATES
from eagleops.render.nightly.commands import again
from eagleops.render.nightly.headline import headline
from eagleops.render.nightly.safe import presentable
from eagleops.render.nightly.sections import sections_of
from eagleops.render.nightly.strips import span_of, strip
from eagleops.render.nightly.words import figure, span, took_s
from eagleops.render.page.markup import templates
from eagleops.workflows.nightly.report import NightReport


def page(report: NightReport, secrets: Iterable[str] = ()) -> str:
    """The report as one HTML document: no script, nothing of elsewhere.

    Args:
        report: What the night came to.
        secrets: Values to be left out, whatever name they stand under.

    Raises:
        UsageError: if jinja2 or matplotlib is not installed.
    """
    report = presentable(report, secrets)
    sections = sections_of(report)
    told: str = (
        templates(__package__)
        .get_template("nightly.html.j2")
        .render(
            report=report,
            night=report.night,
            headline=headline(report),
            sections=sections,
            dates=span_of(sections.nights),
            key={state: strip(state, [state], [""]).svg for state in STATES},
            about=tuple(_about(report)),
            again=again(report),
            figure_text=figure,
            version=__version__,
        )
    )
    return told


def _about(report: NightReport) -> Iterator[tuple[str, str]]:
    night = report.night
    yield "Began", _moment(night.began_utc)
    if night.ended_utc is not None:
        yield "Ended", _moment(night.ended_utc)
    if (seconds := took_s(night)) is not None:
        before = [took for n in report.history[-30:] if (took := took_s(n)) is not None]
        usual = f"; usually {span(median(before))}" if before else ""
        yield "Took", f"{span(seconds)}{usual}"
    yield "Outcome", night.cut_short or "It came to its end."
    if night.client:
        yield "Run by", f"{night.user} on {night.client}, eagleops {night.eagleops}"
    for kind, place in report.reports.items():
        yield f"{kind} report", place
    for name, delivery in report.deliveries.items():
        sent = delivery.get("ok")
        yield f"Message to {name}", "sent" if sent else f"not sent: {delivery.get('problem')}"


def _moment(told_utc: str) -> str:
    return f"{told_utc[:19].replace('T', ' ')} UTC"
