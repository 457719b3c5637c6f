"""Templates: what is put into one is text, never markup."""

from __future__ import annotations

import re
from typing import Any

from eagleops.comparison.loading import load

# Longer ones are paths and the like: those break where they must.
_HYPHENATED = re.compile(r"(?<!\S)(?=\S*-)[^\s<>]{1,24}(?!\S)")


def templates(package: str) -> Any:
    """Jinja's environment over the templates of ``package`` and those of every page.

    Raises:
        UsageError: if jinja2 is not installed.
    """
    jinja2 = load("jinja2")
    folders = [jinja2.PackageLoader(name, "templates") for name in (package, __package__)]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["unbroken"] = unbroken
    return environment


def unbroken(text: str) -> Any:
    """A text in which no line ends inside a date, a flag or a name that holds a hyphen."""
    markupsafe = load("markupsafe")
    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(_HYPHENATED.sub(r'<span class="unbroken">\g<0></span>', escaped))
