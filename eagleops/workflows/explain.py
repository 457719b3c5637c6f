"""Explain: a verified environment, with the story of one variable of it."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.environment import EnvReport
from eagleops.environment.story import Story
from eagleops.view import View


@attrs.frozen
class Explained:
    """A report, and the story of one variable in one of its processes."""

    report: EnvReport
    story: Story

    @property
    def ok(self) -> bool:
        """Whether the explained variable is in effect in that process."""
        return self.exit_status == 0

    @property
    def exit_status(self) -> int:
        """1 if it is wrong or missing, 3 if that cannot be told, else 0."""
        return {"ok": 0, "unknown": 3}.get(self.story.kind, 1)

    def to_dict(self) -> dict[str, Any]:
        """The report's JSON with the story beside it."""
        return {**self.report.to_dict(), "ok": self.ok, "story": self.story.to_dict()}

    def view(self) -> View:
        """The story."""
        return self.story.view()

    def _repr_html_(self) -> str:
        return self.view().to_html()


def explain(report: EnvReport, variable: str, pid: int | None = None) -> Explained:
    """The story of ``variable``: see :meth:`EnvReport.explain`.

    Raises:
        UsageError: if the report has no such variable or process.
    """
    return Explained(report, report.explain(variable, pid))
