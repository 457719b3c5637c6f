"""Weighing: the strongest witness that speaks decides.

That is what NCCL refused, what NCCL took, what the process's environment holds now, in this
order. What the process was started with never decides alone: it may have changed since.
``missing`` takes a witness that can see; a blind one is ``unknown``.
"""

from __future__ import annotations

import attrs

from eagleops.environment.by_environment import as_it_stands, blind
from eagleops.environment.by_nccl import as_nccl_took_it, refused
from eagleops.environment.origin import engines_doing
from eagleops.environment.values import Value
from eagleops.environment.verdict import Verdict, unrecorded
from eagleops.environment.witnesses import Witnesses


def verdict(expected: Value | None, witnesses: Witnesses) -> Verdict:
    """Weighs what the witnesses say.

    Args:
        expected: The value that was asked for; None: the variable must not be set. A secret
            that was not recorded can be found missing, but not compared.
        witnesses: Of one variable in one process.
    """
    weighed = _weigh(expected, witnesses)
    if weighed.kind == "wrong" and witnesses.main is None:
        guesses = (each.told(witnesses.engine) for each in engines_doing(witnesses))
        notes = tuple(f"the engine may have set it: {guess}" for guess in guesses)
        return attrs.evolve(weighed, notes=weighed.notes + notes)
    return weighed


def _weigh(expected: Value | None, witnesses: Witnesses) -> Verdict:
    effective = witnesses.effective
    if effective.refusals:
        return refused(witnesses)
    if effective.values and not unrecorded(expected):
        return as_nccl_took_it(expected, witnesses)
    if not witnesses.live.readable:
        return blind(witnesses)
    return as_it_stands(expected, witnesses)
