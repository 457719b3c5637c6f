"""Waiting for a fact with a limit, instead of sleeping and hoping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def until(fact: Callable[[], T], *, limit_s: float = 60.0, interval_s: float = 0.01) -> T:
    """The first true value of ``fact``; an AssertionError names it when the limit passes.

    The limit is there for what hangs: no busy machine takes so long for anything.
    """
    deadline = time.monotonic() + limit_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{fact} did not become true within {limit_s:g} s: {value!r}")
        time.sleep(interval_s)


def acting_when(fact: Callable[[], object], act: Callable[[], object]) -> threading.Thread:
    """Acts in a thread of its own as soon as ``fact`` is true, while the test waits elsewhere."""

    def work() -> None:
        until(fact)
        act()

    thread = threading.Thread(target=work, name="acting-when", daemon=True)
    thread.start()
    return thread


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
