"""In which order the restarts of several profiles come. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, get_args

from eagleops.errors import UsageError

Order = Literal["abba", "given", "random"]
ORDERS: tuple[Order, ...] = get_args(Order)


def order_of(text: str) -> Order:
    """An order by its name.

    Raises:
        UsageError: if there is none of that name.
    """
    if text not in ORDERS:
        raise UsageError(
            problem=f"expected {', '.join(ORDERS[:-1])} or {ORDERS[-1]}, got {text}",
            where="--order",
        )
    return text


def rounds(
    profiles: Sequence[str], restarts: int, order: Order, seed: int = 0
) -> tuple[tuple[str, ...], ...]:
    """Each round has every profile once, so that a slow drift meets all of them.

    Args:
        profiles: Their names.
        restarts: How many rounds.
        order: ``given``: as they are named; ``abba``: every second round backwards, so that a
            steady drift cancels out; ``random``: shuffled anew each round.
        seed: Of the shuffling.
    """
    draw = random.Random(seed)  # noqa: S311 - an order, no secret
    found = []
    for number in range(restarts):
        line = list(profiles)
        if order == "abba" and number % 2:
            line.reverse()
        elif order == "random":
            draw.shuffle(line)
        found.append(tuple(line))
    return tuple(found)
