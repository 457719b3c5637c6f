"""What a handful of measurements says of the figure behind them. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import attrs

CONFIDENCE = 0.95


@attrs.frozen
class Interval:
    """A median, and between which values the true one lies.

    Attributes:
        median: Of the samples.
        low: The interval's lower end.
        high: Its upper end.
        samples: In the order in which they were taken.
        confidence: The share of such intervals that hold the true median. With fewer than six
            samples not even their whole range reaches 95 %: five give 93.75 %.
    """

    median: float
    low: float
    high: float
    samples: tuple[float, ...]
    confidence: float

    def to_dict(self) -> dict[str, object]:
        """The interval as JSON."""
        return {**attrs.asdict(self), "samples": list(self.samples)}


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median of ``samples`` with an interval from their order statistics.

    The number of samples below the true median is binomial (n, 1/2) whatever the distribution
    is, so the interval from the k-th smallest to the k-th largest holds it with probability
    ``1 - 2 P(B < k)``: the narrowest one that reaches ``confidence``, else the whole range
    (Meeker, Hahn, Escobar: Statistical Intervals, 2nd edition, section 5.2).

    Raises:
        ValueError: without samples.
    """
    if not samples:
        raise ValueError("a median needs at least one sample")
    ordered = sorted(samples)
    count = len(ordered)
    rank = 1
    while 2 * (rank + 1) <= count and _coverage(count, rank + 1) >= confidence:
        rank += 1
    return Interval(
        statistics.median(ordered),
        ordered[rank - 1],
        ordered[count - rank],
        tuple(samples),
        _coverage(count, rank),
    )


def _coverage(count: int, rank: int) -> float:
    """How surely the true median lies between the rank-th smallest and largest of ``count``."""
    below = sum(math.comb(count, fewer) for fewer in range(rank))
    return max(0.0, 1.0 - 2.0 * below / float(2**count))
