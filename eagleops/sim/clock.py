"""The token clock: when each token of a reply comes. Its pace is true by construction.

Every time is an offset from the request's start on one absolute schedule, so a late
delivery delays no later one. Between the first token and the last, a plain reply has
exactly ``tok_s`` tokens a second; a speculative one has one cycle each ``cycle_ms``, and
after any number of cycles the tokens differ by less than two from that number times the
accept length.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from eagleops.sim.settings import Settings, SimError

# Golden ratio: the phases of any number of requests in a row lie evenly.
_GOLDEN = 0.6180339887498949


class Tick(NamedTuple):
    """Tokens that come together.

    Attributes:
        due_s: When, from the request's start.
        tokens: How many: 1 in plain decoding, a cycle's yield in speculative.
    """

    due_s: float
    tokens: int


class TokenClock(NamedTuple):
    """The pace of one server.

    Attributes:
        step_s: Of a plain step, or of a speculative cycle.
        accept_length: Tokens a cycle on the mean, with the target's own; None when plain.
        most: Tokens a cycle can yield at most.
        noise: Standard deviation of a request's pace, as a share of it.
    """

    step_s: float
    ttft_s: float
    accept_length: float | None = None
    most: int = 1
    noise: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, settings: Settings, drafts: int) -> TokenClock:
        """The clock of a server.

        Args:
            settings: What its profile says.
            drafts: Tokens drafted in a speculative cycle; 0 without speculation.

        Raises:
            SimError: if a cycle would have to yield more tokens than it can.
        """
        ttft_s = settings.ttft_ms / 1000 / settings.speed
        noise = settings.noise_pct / 100
        if not drafts:
            step_s = 1 / settings.tok_s / settings.speed
            return cls(step_s, ttft_s, noise=noise, seed=settings.seed)
        most = drafts + 1
        if settings.accept_length > most:
            raise SimError(
                f"`sim: accept_length` of {settings.accept_length:g} is more than the {most} "
                f"tokens that a cycle with {drafts} drafted ones can yield"
            )
        cycle_s = settings.cycle_ms / 1000 / settings.speed
        return cls(cycle_s, ttft_s, settings.accept_length, most, noise, settings.seed)

    def ticks(self, tokens: int, request: int, slowdown: float = 1.0) -> Iterator[Tick]:
        """The schedule of a reply.

        Args:
            tokens: Its length; a last cycle that would yield more is cut.
            request: Number of the request: it sets noise and phase.
            slowdown: Times by which every step is longer (a throttled GPU).
        """
        draw = random.Random(f"{self.seed}/{request}")  # noqa: S311 - noise, no secret
        step_s = self.step_s * slowdown / max(0.1, 1 + draw.gauss(0, self.noise))
        yield Tick(self.ttft_s, 1)
        left = tokens - 1
        for cycle, yielded in enumerate(self._yields(request * _GOLDEN % 1), 1):
            if left <= 0:
                return
            yield Tick(self.ttft_s + cycle * step_s, min(yielded, left))
            left -= yielded

    def _yields(self, phase: float) -> Iterator[int]:
        """Tokens of each cycle, without end."""
        if self.accept_length is None:
            while True:
                yield 1
        return (yield from _spread(self.accept_length, self.most, phase))


def _spread(mean: float, most: int, phase: float) -> Iterator[int]:
    """Whole numbers from 1 to ``most`` whose mean is ``mean``, as evenly as can be.

    Plain rounding would only ever yield the two numbers next to the mean. So every second
    pair of equal neighbours that has room on both sides is pulled apart by one.
    """
    before = math.floor(phase)
    pairs = 0
    for first in range(1, 1 << 62, 2):
        middle, after = (math.floor(phase + n * mean) for n in (first, first + 1))
        one, other = middle - before, after - middle
        before = after
        if one == other and 1 < one < most:
            pairs += 1
            if pairs % 2:
                one, other = one - 1, other + 1
        yield one
        yield other
