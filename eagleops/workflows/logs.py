"""Logs: a server's log, its last lines or as it grows."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.machine import Machine


def logs(machine: Machine, name: str, *, lines: int = 100, follow: bool = False) -> Iterator[str]:
    """The log of server ``name``, line by line, without line ends.

    Args:
        machine: Where it runs.
        name: The server's.
        lines: How many of the last lines to begin with.
        follow: Go on until the server has ended or the iterator is closed.

    Raises:
        OperationFailed: ``no_such_server``.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    for event in machine.stream("tail", name=name, lines=lines, follow=follow):
        if event["event"] == "log":
            yield from event["lines"]
