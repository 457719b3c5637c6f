"""Waiting for a fact with a limit, instead of sleeping and hoping."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def until(fact: Callable[[], T], *, limit_s: float = 10.0, interval_s: float = 0.01) -> T:
    """The first true value of ``fact``; an AssertionError names it when the limit passes."""
    deadline = time.monotonic() + limit_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{fact} did not become true within {limit_s:g} s: {value!r}")
        time.sleep(interval_s)


def processes_with(word: str) -> list[int]:
    """PIDs of live processes with ``word`` in their command line; one's own is left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            title = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in title:
            found.append(int(entry.name))
    return found
