"""Writing a report: its data, its plots, and the page around them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eagleops._version import __version__
from eagleops.ledger.redaction import without_secrets
from eagleops.ledger.run import now_utc
from eagleops.render.page.file import ready, write_page
from eagleops.render.page.markup import templates
from eagleops.render.report.plots import plots_of
from eagleops.render.report.sections import sections_of
from eagleops.workflows.compare_result import CompareResult
from eagleops.workflows.record import secrets_of


def write(result: CompareResult, path: Path) -> None:
    """Writes the report to ``path``.

    Raises:
        UsageError: as :func:`ready`.
    """
    ready(path)
    write_page(path, page(result))


def gallery(result: CompareResult) -> str:
    """The plots alone, as a fragment of HTML for a notebook.

    Raises:
        UsageError: as :func:`page`.
    """
    drawn = plots_of(result, _without_secrets(result))
    told: str = templates(__package__).get_template("gallery.html.j2").render(plots=drawn)
    return told


def page(result: CompareResult) -> str:
    """The report as one HTML document.

    Raises:
        UsageError: if jinja2 or matplotlib is not installed.
    """
    recorded = _without_secrets(result)
    told: str = (
        templates(__package__)
        .get_template("report.html.j2")
        .render(
            result=result,
            written_utc=now_utc(),
            version=__version__,
            sections=sections_of(result, recorded),
            plots=plots_of(result, recorded),
        )
    )
    return told


Recorded = Mapping[tuple[str, int], Mapping[str, Any]]


def _without_secrets(result: CompareResult) -> Recorded:
    """What was recorded of each restart; of one that no ledger took, with its secrets out too."""
    known = {value for profile in result.profiles for value in secrets_of(profile)}
    return {
        (trial.profile, trial.restart): without_secrets(trial.parts, known)
        for trial in result.trials
    }
