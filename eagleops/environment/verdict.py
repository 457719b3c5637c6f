"""The verdict on one variable in one process."""

from __future__ import annotations

from typing import Literal

import attrs

from eagleops.environment.origin import engines_doing
from eagleops.environment.values import Secret, Value, same
from eagleops.environment.witnesses import Witnesses

Kind = Literal["ok", "wrong", "missing", "unknown"]

SET_IT = "Set it in the profile's env, so that each process starts with it, and launch again."


@attrs.frozen
class Verdict:
    """What is so, and why.

    Attributes:
        kind: ``ok``: the process runs with the expected value. ``wrong``: with another one,
            or NCCL did not take it. ``missing``: without any. ``unknown``: cannot be told.
        notes: What else is worth knowing, whatever the kind.
        why: In words; empty for ``ok``.
        way_out: What to do; empty where nothing helps.
        proved: Whether NCCL's own log says so.
        asides: What the kind rests on, for whoever asks; no reader is alarmed by it.
    """

    kind: Kind
    notes: tuple[str, ...] = ()
    why: str = ""
    way_out: str = ""
    proved: bool = False
    asides: tuple[str, ...] = ()


def undo(witnesses: Witnesses) -> str:
    """The way out of a value that should not be there."""
    conf, live = witnesses.conf, witnesses.live
    if conf is not None and live.value is not None and same(conf.value, live.value):
        return f"Take it out of {conf.path}, or set it in the profile's env: that is stronger."
    if any(override.forced for override in engines_doing(witnesses)):
        return "The engine sets it itself; the profile cannot, unless one of its flags does."
    return SET_IT


def unrecorded(expected: Value | None) -> bool:
    """Whether a secret is expected whose value nobody has."""
    return isinstance(expected, Secret) and not expected.recorded
