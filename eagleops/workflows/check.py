"""One thing that doctor looked at."""

from __future__ import annotations

from typing import Any, Literal

import attrs

State = Literal["pass", "warn", "fail"]


@attrs.frozen
class Check:
    """One thing that was looked at.

    Attributes:
        id: Its stable name.
        message: What was seen, and where it is not well, the way out.
    """

    id: str
    state: State
    message: str

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON."""
        return attrs.asdict(self)
