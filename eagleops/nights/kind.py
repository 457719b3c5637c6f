"""What a kind of check is."""

from __future__ import annotations

from typing import Literal

import attrs

Of = Literal["host", "profile", "command"]


@attrs.frozen
class CheckKind:
    """One kind of check.

    Attributes:
        id: Its stable name.
        reads: What it looks at, in a sentence.
        severity: What a fault is unless a suite says otherwise.
        limit: In ``unit``; None for a check without a figure.
        why: Why that is the default.
        lasting: Whether a fault holds until a night passes without it. Otherwise it is news of
            one night: it is told once, and its absence in the next night is none.
        of: Whether there is one for a host, for each profile, or for each command.
    """

    id: str
    reads: str
    severity: Literal["warn", "fail"]
    limit: float | None = None
    unit: str = ""
    why: str = ""
    lasting: bool = True
    of: Of = "host"
