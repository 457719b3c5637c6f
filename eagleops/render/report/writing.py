"""Writing a report: its data, its plots, and the page around them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eagleops._version import __version__
from eagleops.comparison.loading import load
from eagleops.errors import UsageError
from eagleops.ledger.redaction import without_secrets
from eagleops.ledger.run import now_utc
from eagleops.render.page.markup import templates
from eagleops.render.report.plots import plots_of
from eagleops.render.report.sections import sections_of
from eagleops.workflows.compare_result import CompareResult
from eagleops.workflows.record import secrets_of


def ready(path: Path) -> None:
    """Makes sure that a report can be written to ``path``.

    Raises:
        UsageError: if a package is missing, or the folder is not there or not writable.
    """
    load("jinja2")
    load("matplotlib.figure")
    folder = path.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK) or path.is_dir():
        raise UsageError(
            problem="the report cannot be written there",
            where=str(path),
            way_out="Name a file in a folder that exists.",
        )


def write(result: CompareResult, path: Path) -> None:
    """Writes the report to ``path``.

    Raises:
        UsageError: as :func:`ready`.
    """
    ready(path)
    text = page(result)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            problem=f"the report cannot be written: {error.strerror}", where=str(path)
        ) from error


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
