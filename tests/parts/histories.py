"""Nightly figures whose true levels are known. The standard library alone, any Python 3."""

from __future__ import annotations

import math
import random
import statistics
from typing import NamedTuple


class History(NamedTuple):
    """How a kind of history is made; nights count from 1, sizes are percents."""

    nights: int = 60
    noise: float = 1.0
    steps: tuple[tuple[int, float], ...] = ()
    odd: tuple[tuple[int, float], ...] = ()
    missing: tuple[int, ...] = (12, 20)
    slope: float = 0.0
    after: float = 0.0
    tails: int = 0

    def make(self, seed: int) -> list[tuple[int, float]]:
        """The nights that were measured, with their figures."""
        chance = random.Random(seed)
        carried, found = 0.0, []
        for night in range(1, self.nights + 1):
            step = chance.gauss(0, 1)
            if self.tails:
                # Student's t, scaled to a variance of 1.
                squares = statistics.fmean(chance.gauss(0, 1) ** 2 for _ in range(self.tails))
                step *= math.sqrt((self.tails - 2) / self.tails / squares)
            carried = self.after * carried + math.sqrt(1 - self.after**2) * step
            figure = 88.8 * (1 + carried * self.noise / 100) * (1 + self.slope * night / 100)
            for begun, percent in self.steps:
                figure *= 1 + percent / 100 if night >= begun else 1
            for at, percent in self.odd:
                figure *= 1 + percent / 100 if night == at else 1
            if night not in self.missing:
                found.append((night, figure))
        return found


STEP = ((31, -7.0),)
HISTORIES = {
    "the figure, noise 0.5 %": History(noise=0.5, steps=STEP, odd=((44, -15),)),
    "the figure, noise 1 %": History(steps=STEP, odd=((44, -15),)),
    "the figure, noise 2 %": History(noise=2, steps=STEP, odd=((44, -15),)),
    "odd night of +15 %": History(steps=STEP, odd=((44, 15),)),
    "odd nights of -15 % before and after": History(steps=STEP, odd=((25, -15), (44, -15))),
    "a step of 4 %": History(steps=((31, -4),)),
    "two steps of 4 %": History(steps=((25, -4), (40, -4))),
    "a step that recovers after 10": History(steps=((31, -7), (41, 100 * (1 / 0.93 - 1)))),
    "an improvement of 7 %": History(steps=((31, 7),)),
    "nothing, 60 nights, noise 0.5 %": History(noise=0.5),
    "nothing, 60 nights, noise 1 %": History(),
    "nothing, 60 nights, noise 2 %": History(noise=2),
    "nothing, 120 nights, three odd": History(nights=120, odd=((30, -15), (60, -15), (95, 15))),
    "nothing, two odd side by side": History(odd=((30, -15), (31, -12))),
    "nothing, heavy tails (t of 4)": History(tails=4),
    "nothing, each night like the last (0.4)": History(after=0.4),
}
