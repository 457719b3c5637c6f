"""Log lines in SGLang's form."""

from __future__ import annotations

import time

from eagleops.sim.engine import say


class Log:
    """Where a process logs.

    Args:
        tag: What stands behind the time, for example `` TP3``; empty with one rank.
    """

    def __init__(self, tag: str = "") -> None:
        self._tag = tag

    def __call__(self, line: str) -> None:
        """Writes one line."""
        say(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}{self._tag}] {line}")

    def uvicorn(self, line: str, level: str = "INFO") -> None:
        """Writes a line of the HTTP server's."""
        self(f"{level + ':':<9} {line}")


def rank_tag(rank: int, ranks: int) -> str:
    """The tag of a scheduler's lines."""
    return f" TP{rank}" if ranks > 1 else ""
