"""How numbers, lists and times stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """``1 night``, ``3 nights``, ``1,024 processes``."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; nothing for none."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def some(words: Sequence[str], most: int) -> str:
    """The first of them, and how many more there are: ``a, b and 3 more``."""
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more:,} more" if more > 0 else "")


def minute(at_utc: str) -> str:
    """A time as people read it, ``2026-10-02 02:30 UTC``.

    Args:
        at_utc: In UTC, RFC 3339.
    """
    return f"{at_utc[:16].replace('T', ' ')} UTC"
