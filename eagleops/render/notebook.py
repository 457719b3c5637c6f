"""A notebook's progress and plots: drawn where they were asked for, whatever thread works."""

from __future__ import annotations

import html
import threading
import time
from typing import Any

import attrs

from eagleops.comparison.loading import load
from eagleops.render.progress import TITLES
from eagleops.workflows.compare_result import CompareResult
from eagleops.workflows.progress import Step

# A browser that is told of every token draws nothing else.
INTERVAL_S = 0.2
_LINES = 6


@attrs.frozen
class Gallery:
    """A comparison's plots as a notebook shows them."""

    markup: str

    def _repr_html_(self) -> str:
        return self.markup


def plots(result: CompareResult) -> Gallery:
    """The plots of a comparison, for a cell's last line.

    Raises:
        UsageError: if jinja2 or matplotlib is not installed.
    """
    from eagleops.render.report import gallery

    return Gallery(gallery(result))


@attrs.define(eq=False)
class NotebookProgress:
    """Draws steps under the cell that runs; hand it on as ``progress``.

    It may be called from any thread, so that a cell can await a workflow that works in one:
    ``await asyncio.to_thread(eagleops.compare, box, profiles, progress=NotebookProgress())``.
    """

    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _lines: list[str] = attrs.field(factory=list, init=False)
    _detail: str = attrs.field(default="", init=False)
    _drawn_s: float = attrs.field(default=0.0, init=False)
    _handle: Any = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        shown = load("IPython.display")
        self._handle = shown.display(shown.HTML(self.html), display_id=True)

    def __call__(self, step: Step) -> None:
        """Takes in one step of a workflow."""
        with self._lock:
            if not step.event:
                self._lines.append(TITLES.get(step.stage, step.stage))
                self._detail = ""
            else:
                self._detail = str(step.event.get("detail") or "")
            now_s = time.monotonic()
            if now_s - self._drawn_s < INTERVAL_S and step.event:
                return
            self._drawn_s = now_s
        self._handle.update(load("IPython.display").HTML(self.html))

    @property
    def html(self) -> str:
        """The latest lines, the running one with its detail."""
        lines = [html.escape(line) for line in self._lines[-_LINES:]]
        if lines and self._detail:
            lines[-1] += f" <span style='opacity:.65'>{html.escape(self._detail[:120])}</span>"
        return f"<pre role='status' style='margin:0'>{'<br>'.join(lines) or '...'}</pre>"
