"""The levels that a series of figures has stood at, by ruptures' kernel change points. Pure.

What is the library's and what is ours (the reasons and the figures: ``docs/explanation/drift.md``):

* :class:`ruptures.KernelCPD` with a Gaussian kernel finds the split of the series that fits best,
  exactly, by PELT. The kernel is what makes one odd night harmless: its cost is bounded, so that
  k points can never win more than k by a level of their own, and :data:`PENALTY` is above 2.
* The kernel's width is told to it: :data:`WIDTH` times the noise. The library's own default,
  the median distance, grows with the very change that is looked for.
* A level is confirmed by :data:`LEAST` points that are nearer to it than to the one before.
  Otherwise two odd nights and the median between them would look like three.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections.abc import Sequence

import attrs

from eagleops.comparison.loading import load

LEAST = 3
WIDTH = 2.5
PENALTY = 2.3
# The noise is not taken for smaller than this share of the smallest change that counts.
QUIETEST = 1 / 6
# 1 / 0.6745: a normal distribution's standard deviation by its median absolute deviation.
BY_MEDIAN = 1.4826
# A change that was told is kept until it has shrunk to this share of the smallest that counts.
KEPT = 2 / 3
# An odd point tells no more than so many standard deviations about where a level began.
MOST_SIGMAS = 4.0
# Twice the logarithm of a likelihood ratio: dates less likely than 1 to 20 are ruled out.
UNLIKELY = 2 * math.log(20)


@attrs.frozen
class Level:
    """A stretch of points about one value.

    Attributes:
        begin, end: Of the points ``[begin:end]`` of the series.
        earliest, latest: Between which points it may have begun, both included.
        value: The median of its points.
    """

    begin: int
    end: int
    earliest: int
    latest: int
    value: float


def noise(values: Sequence[float], smallest_pct: float) -> float:
    """What neighbouring figures differ by if nothing happens: a relative standard deviation.

    From the median of the steps from one point to the next: a change of level is one step among
    many, and an odd point two. Of few points it is uncertain, and taken for somewhat larger.

    Args:
        values: In their order, above 0.
        smallest_pct: The smallest change that counts; the noise is at least a sixth of it.
    """
    quietest = QUIETEST * smallest_pct / 100
    steps = [abs(math.log(b / a)) for a, b in itertools.pairwise(values)]
    if not steps:
        return quietest
    sigma = statistics.median(steps) * BY_MEDIAN / math.sqrt(2)
    return max(quietest, sigma * (1 + 2 / len(values)))


def levels(values: Sequence[float], sigma: float) -> tuple[Level, ...]:
    """The levels of a series, the first one first; one for a series too short to have two.

    Args:
        values: In their order, above 0.
        sigma: Their relative noise.

    Raises:
        UsageError: if ruptures is not installed.
    """
    logs = [math.log(value) / sigma for value in values]
    begins = _confirmed(logs, _split(logs))
    edges = [0, *begins, len(values)]
    found: list[Level] = []
    for before, begin, end in zip([0, *edges], edges, edges[1:], strict=False):
        first, last = _bracket(logs, before, begin, end) if begin else (0, 0)
        found.append(Level(begin, end, first, last, statistics.median(values[begin:end])))
    return tuple(found)


def holds(before: float, stretch: Sequence[float], smallest_pct: float) -> bool:
    """Whether a level differs from the one before by a change that counts.

    A change of about the smallest size would be told in one night and taken back in the next.
    So it is followed as the level grew: told when its median is so far away, and taken back
    only when it has come back by a third.

    Args:
        before: The level before.
        stretch: The new level's points in their order.
        smallest_pct: The smallest change that counts.
    """
    enough = math.log1p(smallest_pct / 100)
    told = False
    ordered: list[float] = []
    for count, value in enumerate(stretch, 1):
        bisect.insort(ordered, value)
        if count < LEAST:
            continue
        middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        apart = abs(math.log(middle / before))
        told = apart >= enough or (told and apart >= KEPT * enough)
    return told


def _split(logs: Sequence[float]) -> list[int]:
    """Where the library sees a new level begin."""
    if len(logs) < 2 * LEAST:
        return []
    ruptures, numpy = load("ruptures"), load("numpy")
    signal = numpy.asarray(logs, dtype=float).reshape(-1, 1)
    kernel = {"gamma": 1 / (2 * WIDTH**2)}
    found = ruptures.KernelCPD(kernel="rbf", min_size=LEAST, params=kernel).fit(signal)
    return [int(end) for end in found.predict(pen=PENALTY)[:-1]]


def _confirmed(logs: Sequence[float], begins: Sequence[int]) -> list[int]:
    """Those of ``begins`` on both sides of which a level is held by enough points."""
    kept = list(begins)
    while True:
        edges = [0, *kept, len(logs)]
        for one, begin in enumerate(kept):
            left, right = logs[edges[one] : begin], logs[begin : edges[one + 2]]
            between = (statistics.median(left) + statistics.median(right)) / 2
            rising = statistics.median(right) > between
            held = sum((value > between) == rising for value in right)
            if min(held, sum((value > between) != rising for value in left)) < LEAST:
                del kept[one]
                break
        else:
            return kept


def _bracket(logs: Sequence[float], before: int, begin: int, end: int) -> tuple[int, int]:
    """Between which points a level may have begun, by the likelihood of each."""
    old, new = statistics.median(logs[before:begin]), statistics.median(logs[begin:end])

    def told(point: int) -> float:
        """How much likelier that point is under the old level than under the new one."""
        return _distance(logs[point] - new) - _distance(logs[point] - old)

    first = last = begin
    lost = 0.0
    for point in range(begin - 1, before, -1):
        lost += told(point)
        if lost <= UNLIKELY:
            first = point
    lost = 0.0
    for point in range(begin, end - 1):
        lost -= told(point)
        if lost <= UNLIKELY:
            last = point + 1
    return first, last


def _distance(sigmas: float) -> float:
    return min(abs(sigmas), MOST_SIGMAS) ** 2
