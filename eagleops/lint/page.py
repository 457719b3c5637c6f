"""The rules as a page of the documentation, made of the rules themselves."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.lint.rule import rules

BEGIN = "<!-- rules: made by eagleops.lint.page, held current by a test -->"
END = "<!-- end of rules -->"


def table() -> str:
    """All rules as a Markdown table."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| rule | mostly | for | holds where |"
    yield "| --- | --- | --- | --- |"
    for rule in rules().values():
        engines = ", ".join(rule.engines) or "all"
        summary = rule.summary.rstrip(".").replace("``", "`")
        yield f"| `{rule.name}` | {rule.severity} | {engines} | {summary[0].lower()}{summary[1:]} |"
