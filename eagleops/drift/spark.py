"""A series as one line of text. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Sequence

from eagleops.drift.series import Point

BARS = "▁▂▃▄▅▆▇█"
CHANGE, LEFT_OUT = "│", "·"
# A flat line would otherwise show its noise as mountains: the line's height is this at least.
LEAST_PCT = 6.0


def spark(points: Sequence[Point], begins: Collection[Point] = (), width: int = 60) -> str:
    """The points as bars, oldest first.

    Args:
        points: Those that do not count are dots.
        begins: Points before which a change of level is marked.
        width: The most characters; where there are more points, neighbours share a bar, which is
            their median.
    """
    counted = [point.value for point in points if not point.excluded]
    if not counted:
        return LEFT_OUT * min(len(points), width)
    low, high = _scale(counted)
    drawn = []
    for group in _groups(points, max(1, width - len(begins))):
        if any(point in begins for point in group):
            drawn.append(CHANGE)
        told = [point.value for point in group if not point.excluded]
        drawn.append(_bar(statistics.median(told), low, high) if told else LEFT_OUT)
    return "".join(drawn)


def _scale(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    middle = (low + high) / 2
    half = max(high - low, LEAST_PCT / 100 * middle) / 2
    return middle - half, middle + half


def _bar(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.5
    return BARS[min(len(BARS) - 1, int(share * len(BARS)))]


def _groups(points: Sequence[Point], most: int) -> list[Sequence[Point]]:
    size = -(-len(points) // most)
    return [points[at : at + size] for at in range(0, len(points), size)]
