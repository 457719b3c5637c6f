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
        summary = _inside(rule.summary.rstrip(".").replace("``", "`"))
        yield f"| `{rule.name}` | {rule.severity} | {engines} | {summary} |"


def _inside(sentence: str) -> str:
    """The sentence as the end of another one; a name such as NCCL or LL128 keeps its capitals."""
    return sentence if sentence[1:2].isupper() else f"{sentence[0].lower()}{sentence[1:]}"
