"""A page's file, where somebody names one."""

from __future__ import annotations

import os
from pathlib import Path

from eagleops.comparison.loading import load
from eagleops.errors import UsageError


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


def write_page(path: Path, text: str) -> None:
    """Writes a page.

    Raises:
        UsageError: if it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            problem=f"the report cannot be written: {error.strerror}", where=str(path)
        ) from error
