"""YAML as it is written for people: plain words stay plain, everything else stands in quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# A word that YAML can only take for itself.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*\Z")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")
_NOT_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
BASIC_PLANE = 0xFFFF


def comment(text: str) -> str:
    """A line of comment: whatever ``text`` holds, it does not get out of it."""
    return "# " + "".join(c if c.isprintable() else "?" for c in text)


def handed_on(value: Any) -> str:
    """A flag's or a variable's value: a number is a text there, and needs no quotes."""
    return value if isinstance(value, str) and _NUMBER.match(value) else scalar(value)


def scalar(value: Any) -> str:
    """A value in YAML's flow style: JSON, but a plain word stays plain."""
    if isinstance(value, str):
        plain = _PLAIN.match(value) and value.lower() not in _NOT_TEXT
        return str.__str__(value) if plain else quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(k)}: {scalar(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(scalar, value)) + "]"
    return json.dumps(value)


def quoted(text: str) -> str:
    """A text in double quotes: JSON's escapes, but for what JSON writes as two halves."""
    escaped = (f"\\U{ord(c):08X}" if ord(c) > BASIC_PLANE else json.dumps(c)[1:-1] for c in text)
    return f'"{"".join(escaped)}"'
