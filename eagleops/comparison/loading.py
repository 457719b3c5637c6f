"""Packages that not every installation has, loaded when they are used."""

from __future__ import annotations

import importlib
import logging
from typing import Any

from eagleops.errors import UsageError

_NEEDED_FOR = {
    "scipy": ("stats", "a comparison's statistics need it"),
    "numpy": ("stats", "a comparison's statistics need it"),
    "matplotlib": ("plots", "a report's plots need it"),
    "IPython": ("notebook", "a notebook's progress needs it"),
    "jinja2": ("plots", "a report needs it"),
    "markupsafe": ("plots", "a report needs it"),
    "junitparser": ("nightly", "the nightly checks' JUnit report needs it"),
    "prometheus_client": ("nightly", "the nightly checks' metrics need it"),
    "ruptures": ("nightly", "finding when a figure changed needs it"),
}


def load(module: str) -> Any:
    """Imports a module of an extra.

    Raises:
        UsageError: if it is not installed, with the line that installs it.
    """
    # Where it keeps its cache, and each font that it weighs, is no news of ours.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        extra, purpose = _NEEDED_FOR[module.partition(".")[0]]
        raise UsageError(
            problem=f"{module.partition('.')[0]} is not installed, and {purpose}",
            way_out=f"pip install 'eagleops[{extra}]'",
        ) from missing
