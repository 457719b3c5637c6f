"""Numbers the way NCCL reads them."""

from __future__ import annotations

import re

_STRTOLL = re.compile(r"[ \t\n\v\f\r]*([-+]?)(?:(0[xX])([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))")
_WHOLE_NUMBER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


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
