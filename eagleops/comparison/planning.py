"""How many restarts a comparison needs, and what several at once cost. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eagleops.comparison.loading import load

ALPHA = 0.05
SMALLEST_PCT = 2.0
# A spread needs two, and an interval from two says nothing yet.
LEAST = 3


def restarts_to_reach(alpha: float) -> int:
    """The fewest restarts of each side with which Mann-Whitney's test can get below ``alpha``.

    Its smallest two-sided p is ``2 / C(2n, n)``: 0.1 with three against three.
    """
    count = 1
    while 2 / math.comb(2 * count, count) >= alpha:
        count += 1
    return count


def restarts_for_precision(
    spread_pct: float, precision_pct: float = SMALLEST_PCT, alpha: float = ALPHA
) -> int:
    """Restarts of each side until the change's interval is no wider than plus or minus so much.

    Args:
        spread_pct: The standard deviation of one restart's figure, in percent of it.
        precision_pct: Half of the interval's wanted width.
        alpha: Of the interval.

    Raises:
        UsageError: if scipy is not installed.
    """
    stats = load("scipy.stats")
    least = max(LEAST, restarts_to_reach(alpha))
    if spread_pct <= 0:
        return least
    count = least
    while count < 10_000:  # noqa: PLR2004 - nobody restarts a server more often
        width = stats.t.ppf(1 - alpha / 2, 2 * count - 2) * spread_pct * math.sqrt(2 / count)
        if width <= precision_pct:
            break
        count = max(count + 1, int(count * 1.01))
    return count


def spread_pct(before: Sequence[float], after: Sequence[float]) -> float | None:
    """The pooled standard deviation of a restart, in percent; None where nothing tells it."""
    weighed = [squares([math.log(x) for x in side]) for side in (before, after) if len(side) > 1]
    if not weighed:
        return None
    return 100 * math.sqrt(sum(s for s, _ in weighed) / sum(n - 1 for _, n in weighed))


def holm(p_values: Sequence[float | None], alpha: float = ALPHA) -> tuple[float, ...]:
    """What each of several p values has to be below, so that one false alarm stays at ``alpha``.

    Holm, 1979: the smallest is held against ``alpha / k``, the next against ``alpha / (k - 1)``;
    after the first that fails none passes, so it and all later ones keep its level.
    """
    order = sorted(range(len(p_values)), key=lambda i: (p_values[i] is None, p_values[i] or 0.0))
    levels = [alpha] * len(p_values)
    level = 0.0
    stopped = False
    for place, index in enumerate(order):
        if not stopped:
            level = alpha / (len(p_values) - place)
        levels[index] = level
        p_value = p_values[index]
        stopped = stopped or p_value is None or p_value >= level
    return tuple(levels)


def squares(values: Sequence[float]) -> tuple[float, int]:
    """The sum of squared distances to the mean, and how many values there are."""
    mean = math.fsum(values) / len(values)
    spread = max(values) - min(values)
    # Equal figures differ from their mean by rounding alone.
    return (math.fsum((x - mean) ** 2 for x in values) if spread else 0.0), len(values)
