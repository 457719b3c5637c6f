"""A series as one line of text. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Collection, Sequence

from eagleops.drift.series import Point

BARS = "▁▂▃▄▅▆▇█"
CHANGE, LEFT_OUT = "│", "·"
# A flat line would otherwise show its noise as mountains: the line is at least so high.
LEAST_PCT = 6.0
# One odd run would press all others into one row: so many at either end do not set the scale.
ODD_SHARE = 0.05


def spark(points: Sequence[Point], begins: Collection[Point] = (), width: int = 60) -> str:
    """The points as bars, the oldest first; a higher bar is a larger value.

    Args:
        points: Those that do not count are dots.
        begins: Points before which a change of level is marked.
        width: The most characters; where there are more points, neighbours share a bar, which is
            the median of those that count.
    """
    counted = sorted(point.value for point in points if not point.excluded)
    low, high = _scale(counted) if counted else (0.0, 0.0)
    drawn = []
    for group in _groups(points, max(1, width - len(begins))):
        if any(point in begins for point in group):
            drawn.append(CHANGE)
        told = [point.value for point in group if not point.excluded]
        drawn.append(_bar(statistics.median(told), low, high) if told else LEFT_OUT)
    return "".join(drawn)


def _scale(ordered: Sequence[float]) -> tuple[float, float]:
    odd = int(ODD_SHARE * len(ordered))
    low, high = ordered[odd], ordered[-1 - odd]
    half = max(high - low, LEAST_PCT / 100 * low) / 2
    middle = (low + high) / 2
    return middle - half, middle + half


def _bar(value: float, low: float, high: float) -> str:
    row = int((value - low) / (high - low) * len(BARS))
    return BARS[min(max(row, 0), len(BARS) - 1)]


def _groups(points: Sequence[Point], most: int) -> list[Sequence[Point]]:
    """The points in their order, in groups that differ in size by one at most."""
    count = min(most, len(points))
    edges = [index * len(points) // count for index in range(count + 1)] if count else [0]
    return [points[begin:end] for begin, end in itertools.pairwise(edges)]
