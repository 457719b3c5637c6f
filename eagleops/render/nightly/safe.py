"""A report as it may be written down: without secrets, and in letters that every format holds.

What a check saw is what a machine said, or a command of the user's own: it may hold a token, the
escapes of a terminal, or bytes that are no text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import attrs

from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.nights.one_line import TERMINAL_CODE
from eagleops.remote import redact
from eagleops.workflows.nightly.report import NightReport

# XML 1.0 (section 2.2) has no escape for these; HTML and labels are the better without them.
_UNPRINTABLE = re.compile(
    "[^\t\n\u0020-\u007e\u0085\u00a0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010fffd]"
)


def printable(text: str) -> str:
    r"""A text whose every character XML, HTML and UTF-8 can hold; others are named: ``\x1b``."""
    text = TERMINAL_CODE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def presentable(report: NightReport, secrets: Iterable[str] = ()) -> NightReport:
    """The report with its secrets left out and each of its texts printable.

    Of the nights before, which are shown as states and faults, the rest is dropped.

    Args:
        report: As the night left it.
        secrets: Values that are secrets whatever name they stand under.
    """
    text = lru_cache(maxsize=None)(_text_of(secrets))
    lean = attrs.evolve(report, night=attrs.evolve(report.night, facts={}, journal={}), history=())
    told: NightReport = _written(lean, text)
    return attrs.evolve(told, history=tuple(_before(night, text) for night in report.history))


def written(value: Any, secrets: Iterable[str] = ()) -> Any:
    """JSON, or a frozen object of ours, as it may be written down.

    Args:
        value: What is told.
        secrets: Values that are secrets whatever name they stand under.
    """
    return _written(value, _text_of(secrets))


def _text_of(secrets: Iterable[str]) -> Callable[[str], str]:
    spoken = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
    known = re.compile("|".join(map(re.escape, spoken))) if spoken else None

    def text(value: str) -> str:
        masked = redact.text(value if known is None else known.sub(redact.REDACTED, value))
        return printable(masked)

    return text


def _before(night: Night, text: Callable[[str], str]) -> Night:
    findings = tuple(
        Finding(
            text(found.id),
            text(found.host),
            found.state,
            text(found.message) if found.bad else "",
        )
        for found in night.findings
    )
    return attrs.evolve(night, facts={}, journal={}, findings=findings)


def _written(value: Any, text: Callable[[str], str], name: str = "") -> Any:
    if isinstance(value, str):
        return redact.REDACTED if name and redact.is_secret(name, value) else text(value)
    if isinstance(value, Mapping):
        return {str(key): _written(item, text, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_written(item, text, name) for item in value)
    if isinstance(value, float) and not math.isfinite(value):
        return None  # JSON has no such number, and a page no use for it
    if attrs.has(type(value)):
        fields = [field for field in attrs.fields(type(value)) if field.init]
        changed = {field.alias: _written(getattr(value, field.name), text) for field in fields}
        return attrs.evolve(value, **changed)
    return value
