"""Matplotlib's figures as inline SVG whose colours are the page's own, light and dark.

Colours are drawn as stand-ins and replaced by CSS variables in the SVG's text; letters stay
letters, so that they can be searched, read aloud and scaled.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
from collections.abc import Iterator
from typing import Any

import attrs

from eagleops.comparison.loading import load

# A stand-in, and the CSS variable that takes its place.
INK, MUTED, GRID, WARNING = "#010101", "#020202", "#030303", "#040404"
_SERIES = ("#0a0001", "#0a0002", "#0a0003", "#0a0004", "#0a0005", "#0a0006")
_VARIABLES = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    WARNING: "--warning",
    **{colour: f"--series-{number}" for number, colour in enumerate(_SERIES, 1)},
}
# A series is told by its mark too, for whoever sees no difference between its colour and another.
MARKS = ("o", "s", "^", "D", "v", "P")
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "eagleops",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
}


@attrs.frozen
class Plot:
    """One figure.

    Attributes:
        title: Its heading.
        svg: Markup, safe to be put into a page.
        description: What it shows, in words, for whoever cannot see it.
    """

    title: str
    svg: str
    description: str


def colour(number: int) -> str:
    """The stand-in for the colour of a series, from 0."""
    return _SERIES[number % len(_SERIES)]


@contextlib.contextmanager
def figure(width: float, height: float) -> Iterator[Any]:
    """A figure of so many inches, drawn in the page's colours."""
    matplotlib = load("matplotlib")
    drawing = load("matplotlib.figure")
    with matplotlib.rc_context(_SETTINGS):
        yield drawing.Figure(figsize=(width, height), layout="constrained")


def svg(drawn: Any, name: str, title: str, description: str) -> Plot:
    """A figure as a plot.

    Args:
        drawn: Matplotlib's figure.
        name: Of its own in the page: every id in the SVG begins with it.
        title: Its heading.
        description: In words.
    """
    written = io.StringIO()
    drawn.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for stand_in, variable in _VARIABLES.items():
        text = text.replace(stand_in, f"var({variable})")
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'xlink:href="#{name}-')
    return Plot(title, _labelled(text, name, title, description), description)


def _labelled(text: str, name: str, title: str, description: str) -> str:
    head, _, rest = text.partition(">")
    # The page gives the width; the view box keeps the shape.
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = (
        f'<title id="{name}-title">{html.escape(title)}</title>'
        f'<desc id="{name}-desc">{html.escape(description)}</desc>'
    )
    aria = f' role="img" aria-labelledby="{name}-title {name}-desc"'
    return f"{head}{aria}>{label}{rest}"
