"""How NCCL reads its variables: configuration files first, then the live environment."""

from __future__ import annotations

import os
import re
from pathlib import Path

# Where both are allowed to say something, the process's environment wins.
SYSTEM_FILE = Path("/etc/nccl.conf")
_MOST = 2**63 - 1


class NcclError(Exception):
    """A call of NCCL that failed.

    Attributes:
        result: Its result code by name, for example ``ncclInvalidUsage``.
        last_error: NCCL's own sentence; empty where it has none.
    """

    def __init__(self, result: str, last_error: str) -> None:
        super().__init__(result, last_error)
        self.result = result
        self.last_error = last_error


def fold_in_files() -> None:
    """Sets what the configuration files say and the environment does not.

    After this the live environment holds it: /proc/PID/environ never does.
    """
    named = os.environ.get("NCCL_CONF_FILE")
    for path in (Path(named) if named else Path.home() / ".nccl.conf", SYSTEM_FILE):
        try:
            lines = path.read_text("utf-8", "surrogateescape").splitlines()
        except OSError:
            continue
        for line in lines:
            name, equals, value = line.partition("=")
            if equals and name and not name.startswith("#"):
                os.environ.setdefault(name, value)


def text(name: str) -> str | None:
    """A variable's value; None where it is absent or empty."""
    return os.environ.get(name) or None


def number(value: str) -> int | None:
    """What strtoll makes of a value in base 0: ``4M`` is 4, ``abc`` is 0, ``010`` is 8.

    None where it does not fit 64 bits.
    """
    found = re.match(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", value)
    if not found:
        return 0
    sign, digits = found.groups()
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    parsed = int(digits, base) * (-1 if sign == "-" else 1)
    return parsed if -_MOST - 1 <= parsed <= _MOST else None


def parse_choice(value: str, known: tuple[str, ...], functions: tuple[str, ...]) -> set[str]:
    """The elements that a list like ``Ring,Tree``, ``^LL128`` or ``allreduce:ring`` leaves.

    Only what it says of all-reduce is kept.

    Raises:
        NcclError: for a word that is no element, as NCCL 2.24 and newer do.
    """
    chosen = set(known)
    for part in value.split(";"):
        prefix, colon, elements = part.rpartition(":")
        if colon and prefix.lower() not in functions:
            raise NcclError("ncclInvalidUsage", _unrecognized("prefix", prefix, value))
        excluded = elements.startswith("^")
        words = elements.lstrip("^").split(",")
        by_name = {name.lower(): name for name in known}
        for word in words:
            if word.lower() not in by_name:
                raise NcclError("ncclInvalidUsage", _unrecognized("element", word, elements))
        listed = {by_name[word.lower()] for word in words}
        if not colon or prefix.lower() == "allreduce":
            chosen = set(known) - listed if excluded else listed
    return chosen


def _unrecognized(what: str, word: str, whole: str) -> str:
    return f'Unrecognized {what} token "{word}" when parsing "{whole}"'
