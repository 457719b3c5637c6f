"""Templates: what is put into one is text, never markup."""

from __future__ import annotations

from typing import Any

from eagleops.comparison.loading import load


def templates(package: str) -> Any:
    """Jinja's environment over the templates of ``package`` and those of every page.

    Raises:
        UsageError: if jinja2 is not installed.
    """
    jinja2 = load("jinja2")
    folders = [jinja2.PackageLoader(name, "templates") for name in (package, __package__)]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
