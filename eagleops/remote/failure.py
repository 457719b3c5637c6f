"""How an operation says no: one exception with a stable name and its facts."""

from __future__ import annotations

from typing import Any, Dict


class Failure(Exception):
    """An operation's typed failure; it reaches the client as an ``error`` event.

    Args:
        kind: A stable name in snake_case, for example ``port_taken``.
        message: What is wrong, with what was expected and what was got.
        way_out: What the reader can do now.
        data: The facts, as JSON.
    """

    def __init__(self, kind: str, message: str, *, way_out: str = "", **data: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.way_out = way_out
        self.data: Dict[str, Any] = data


class Cancelled(Exception):
    """The client has gone or has called the operation off."""
