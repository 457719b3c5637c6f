"""The kinds of checks as a page of the documentation, made of the catalogue itself."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.nights.catalogue import DOCTOR, KINDS
from eagleops.nights.kind import CheckKind

BEGIN = "<!-- kinds: made by eagleops.nights.page, held current by a test -->"
END = "<!-- end of kinds -->"
_ONE_FOR = {"host": "a host", "profile": "each profile", "command": "each command"}


def text() -> str:
    """All kinds, by what there is one for, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for of, one_for in _ONE_FOR.items():
        yield f"### For {one_for}"
        yield ""
        yield "| check | reads | a fault is | limit | why |"
        yield "| --- | --- | --- | --- | --- |"
        yield from (_row(kind) for kind in KINDS.values() if kind.of == of)
        yield ""
    yield f"The names after `doctor:` are {', '.join(f'`{name}`' for name in DOCTOR)}."


def _row(kind: CheckKind) -> str:
    limit = "" if kind.limit is None else f"{kind.limit:,g} {kind.unit}".strip()
    event = "" if kind.lasting else ", an event"
    cells = (f"`{kind.id}`", kind.reads, f"{kind.severity}{event}", limit, kind.why)
    return f"| {' | '.join(cells)} |"
