"""Values of variables: as text, as numbers the way NCCL reads them, and as secrets."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.knowledge.numbers import is_number, nccl_number
from eagleops.remote.redact import REDACTED


@attrs.frozen
class Secret:
    """A value that is known by its digest alone.

    Attributes:
        salt: Of the reading that it comes from.
        sha256: HMAC-SHA256 of the value, keyed with the salt; empty where the value was not
            recorded at all, and then it can be compared with nothing.
    """

    salt: str = ""
    sha256: str = ""

    @property
    def recorded(self) -> bool:
        """Whether it can be compared."""
        return self.sha256 != ""

    @classmethod
    def of(cls, salt: str, text: str) -> Secret:
        """``text`` as a secret, to be compared with those of the reading with that salt."""
        content = text.encode("utf-8", "surrogateescape")
        return cls(salt, hmac.new(salt.encode("ascii"), content, hashlib.sha256).hexdigest())

    def holds(self, text: str) -> bool:
        """Whether the secret is ``text``."""
        return self.recorded and self == Secret.of(self.salt, text)


Value = str | Secret


def value_of(content: str | Mapping[str, Any] | None, salt: str) -> Value | None:
    """A value from the ``environ`` operation's JSON."""
    if content is None or isinstance(content, str):
        return content
    return Secret(salt, str(content["sha256"]))


def shown(value: Value | None) -> str | None:
    """As it may be shown: a secret is not, and bytes that are no text are escaped."""
    if isinstance(value, Secret):
        return REDACTED
    if value is None:
        return None
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def quoted(value: Value | None) -> str:
    """As it stands in a sentence: its ends are seen, and it cannot move a terminal's cursor."""
    text = shown(value)
    if text is None:
        return "nothing"
    return text if text and text.isprintable() and not set(text) & set(" '\"") else repr(text)


def same(expected: Value, seen: Value | None) -> bool:
    """Whether two values are the same text, where one or both may be secrets."""
    if isinstance(expected, Secret) and isinstance(seen, Secret):
        return expected.recorded and expected == seen
    if isinstance(seen, Secret):
        return isinstance(expected, str) and seen.holds(expected)
    if isinstance(expected, Secret):
        return seen is not None and expected.holds(seen)
    return expected == seen


def same_number(expected: Value, seen: Value | None) -> bool:
    """Whether both are whole numbers, and the same one to NCCL: ``0x10`` and ``16``."""
    if not isinstance(expected, str) or not isinstance(seen, str):
        return False
    return is_number(expected) and is_number(seen) and nccl_number(expected) == nccl_number(seen)
