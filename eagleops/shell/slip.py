"""What is wrong in a pasted text, with its place."""

from __future__ import annotations

from typing import Literal

import attrs


@attrs.frozen(order=True)
class Slip:
    """One slip of whoever wrote, copied or pasted a command.

    Attributes:
        line: 1-based, in the text that was read.
        column: 1-based.
        kind: Its stable name.
        message: What a shell makes of it.
        fix: What was meant, or what to write; may be empty.
    """

    line: int
    column: int
    kind: str
    message: str
    fix: str = ""
    severity: Literal["error", "warning", "note"] = "error"


class Unreadable(Exception):
    """A text that no shell would take, or whose meaning only running it would show."""

    def __init__(self, slip: Slip) -> None:
        super().__init__(slip.message)
        self.slip = slip


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, 1-based."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1
