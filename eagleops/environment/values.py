"""Values of variables: as text, as numbers the way NCCL reads them, and as secrets."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.remote.redact import REDACTED

_STRTOLL = re.compile(r"[ \t\n\v\f\r]*([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_WHOLE_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


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
    """As it may be shown: a secret is not."""
    return REDACTED if isinstance(value, Secret) else value


def quoted(value: Value | None) -> str:
    """As it stands in a sentence."""
    text = shown(value)
    if text is None:
        return "nothing"
    return text if re.fullmatch(r"[^\s'\"]+", text) else repr(text)


def same(expected: Value, seen: Value | None) -> bool:
    """Whether two values are the same text, where one or both may be secrets."""
    if isinstance(expected, Secret) and isinstance(seen, Secret):
        return expected.recorded and expected == seen
    if isinstance(seen, Secret):
        return isinstance(expected, str) and seen.holds(expected)
    if isinstance(expected, Secret):
        return seen is not None and expected.holds(seen)
    return expected == seen


def nccl_number(text: str) -> int | None:
    """The number that NCCL reads in ``text``: ``strtoll`` with base 0 and no look at the rest.

    ``4M`` is 4, ``010`` is 8, ``0x10`` is 16, ``abc`` is 0. None where it overflows: NCCL then
    takes its default.
    """
    match = _STRTOLL.match(text)
    if match is None:
        return 0
    sign, _, hexadecimal, octal, decimal = match.groups()
    magnitude = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)
    number = -magnitude if sign == "-" else magnitude
    return number if _LOWEST <= number <= _HIGHEST else None


def is_number(text: str) -> bool:
    """Whether the whole of ``text`` is a number to NCCL, and a plain one to its reader."""
    return _WHOLE_NUMBER.fullmatch(text) is not None


def same_number(expected: Value, seen: Value | None) -> bool:
    """Whether both are whole numbers, and the same one to NCCL: ``0x10`` and ``16``."""
    if not isinstance(expected, str) or not isinstance(seen, str):
        return False
    return is_number(expected) and is_number(seen) and nccl_number(expected) == nccl_number(seen)
