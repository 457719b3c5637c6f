"""Log lines in vLLM's form."""

from __future__ import annotations

import os
import time

from eagleops.sim.engine import say


class Log:
    """Where a process logs.

    Args:
        name: What the process calls itself, for example ``Worker_TP0``.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, place: str, text: str, level: str = "INFO") -> None:
        """Writes a message; each of its lines has the whole prefix.

        Args:
            place: File and line of the real one, for example ``core.py:402``.
            text: One or more lines.
            level: As Python's logging names it.
        """
        now = time.strftime("%m-%d %H:%M:%S")
        prefix = f"({self._name} pid={os.getpid()}) {level} {now} [{place}]"
        say("\n".join(f"{prefix} {line}" for line in text.split("\n")))


def uvicorn(line: str, level: str = "INFO") -> None:
    """Writes a line of the HTTP server's."""
    say(f"{level + ':':<9} {line}")
