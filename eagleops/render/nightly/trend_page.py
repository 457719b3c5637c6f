"""The history of one figure as an HTML page of its own."""

from __future__ import annotations

from pathlib import Path

from eagleops._version import __version__
from eagleops.render.nightly.safe import written
from eagleops.render.nightly.sections import figure_of
from eagleops.render.page.file import ready, write_page
from eagleops.render.page.markup import templates
from eagleops.workflows.trend import TrendReport
from eagleops.workflows.trend_view import TONES


def page(trend: TrendReport) -> str:
    """A figure's history as one HTML document: no script, nothing of elsewhere.

    Raises:
        UsageError: if jinja2 or matplotlib is not installed.
    """
    figure = figure_of(written(trend), "trend")
    told: str = (
        templates(__package__)
        .get_template("trend.html.j2")
        .render(figure=figure, tone=TONES[trend.drift.state].name.lower(), version=__version__)
    )
    return told


def write(trend: TrendReport, path: Path) -> None:
    """Writes a figure's history to ``path``.

    Raises:
        UsageError: if it cannot be written, or a package is missing.
    """
    ready(path)
    write_page(path, page(trend))
