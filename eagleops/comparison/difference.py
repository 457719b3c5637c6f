"""The difference between two sets of measurements, and how sure it is. Pure, by scipy.

The unit is one server restart: requests to one server share its memory layout, its clocks and
its luck, so ten requests to one server are one measurement and not ten. Each restart is one
number, and what is compared is the mean of these numbers.

* **Interval** of the change: the bootstrap (BCa, :func:`scipy.stats.bootstrap`), which assumes
  no distribution. Of a handful of numbers it is too narrow (a resample holds nothing beyond
  the smallest and largest), so each end is the wider of the bootstrap's and of the one that
  Welch's t quantile gives on the logarithms (Hesterberg: What Teachers Should Know About the
  Bootstrap, 2015, section 4, on that narrowness). With 20 restarts both agree.
* **Test**: Mann-Whitney's U, two-sided, exact: it sees ranks alone, so one odd restart moves it
  little. With few restarts it cannot reach a small p at all:
  :func:`~eagleops.comparison.planning.restarts_to_reach`.
* **Effect size**: Hedges' g, the difference in standard deviations, with the interval from its
  standard error (Hedges, Olkin: Statistical Methods for Meta-Analysis, 1985, section 5.E).

A difference is told only if the test and the interval both show it **and** it is at least the
smallest that matters. Everything else is "no difference shown", which is not "the same": for
that the whole interval has to lie within the smallest difference that matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from eagleops.comparison.loading import load
from eagleops.comparison.planning import ALPHA, LEAST, SMALLEST_PCT, squares

Conclusion = Literal["faster", "slower", "no_difference_shown"]

RESAMPLES = 9999
# Beyond these the exact test takes long and the approximation is as good.
EXACT_RESTARTS = 25


@attrs.frozen(kw_only=True)
class Difference:
    """One profile against another.

    Attributes:
        before, after: The means of the restarts' figures.
        restarts: How many there were of each.
        change_pct: Of the means, in percent.
        low_pct, high_pct: Its interval; None where there are fewer than three restarts.
        p_value: Of Mann-Whitney's test; None where there are fewer than three restarts.
        alpha: What the p value has to be below: less than 0.05 where several profiles are
            compared with one (Holm).
        effect: Hedges' g; ``effect_low`` and ``effect_high`` its interval. None where no
            spread was seen.
        smallest_pct: The smallest change that matters.
    """

    before: float
    after: float
    restarts: tuple[int, int]
    change_pct: float
    low_pct: float | None = None
    high_pct: float | None = None
    p_value: float | None = None
    alpha: float = ALPHA
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None
    smallest_pct: float = SMALLEST_PCT

    @property
    def conclusion(self) -> Conclusion:
        """``faster``, ``slower`` or ``no_difference_shown``."""
        low, high = self.low_pct, self.high_pct
        if low is None or high is None or self.p_value is None or self.p_value >= self.alpha:
            return "no_difference_shown"
        if abs(self.change_pct) < self.smallest_pct or low <= 0 <= high:
            return "no_difference_shown"
        return "faster" if self.change_pct > 0 else "slower"

    @property
    def shows_equality(self) -> bool:
        """Whether a change that matters is ruled out."""
        if self.low_pct is None or self.high_pct is None:
            return False
        return -self.smallest_pct < self.low_pct and self.high_pct < self.smallest_pct

    def to_dict(self) -> dict[str, Any]:
        """The difference as JSON."""
        return {
            **attrs.asdict(self),
            "restarts": list(self.restarts),
            "conclusion": self.conclusion,
            "shows_equality": self.shows_equality,
        }


def difference(
    before: Sequence[float],
    after: Sequence[float],
    *,
    alpha: float = ALPHA,
    smallest_pct: float = SMALLEST_PCT,
    seed: int = 0,
) -> Difference:
    """What ``after`` is against ``before``.

    Args:
        before: One figure a restart, above 0.
        after: Likewise.
        alpha: See :class:`Difference`; the interval holds the true change with 1 - alpha.
        smallest_pct: See :class:`Difference`.
        seed: Of the bootstrap, so that the same numbers give the same answer.

    Raises:
        UsageError: if scipy is not installed.
        ValueError: if one is empty, or a figure is not above 0.
    """
    if not before or not after or min(*before, *after) <= 0:
        raise ValueError("a difference needs figures above 0 of both sides")
    old, new = math.fsum(before) / len(before), math.fsum(after) / len(after)
    plain = Difference(
        before=old,
        after=new,
        restarts=(len(before), len(after)),
        change_pct=100 * (new / old - 1),
        alpha=alpha,
        smallest_pct=smallest_pct,
    )
    if min(len(before), len(after)) < LEAST:
        return plain
    low, high = _interval(before, after, alpha, seed)
    effect, effect_low, effect_high = _effect(before, after, alpha)
    return attrs.evolve(
        plain,
        low_pct=100 * (low - 1),
        high_pct=100 * (high - 1),
        p_value=_p_value(before, after),
        effect=effect,
        effect_low=effect_low,
        effect_high=effect_high,
    )


def _interval(
    before: Sequence[float], after: Sequence[float], alpha: float, seed: int
) -> tuple[float, float]:
    """The interval of ``mean(after) / mean(before)``."""
    numpy, stats = load("numpy"), load("scipy.stats")
    old, new = numpy.asarray(before, float), numpy.asarray(after, float)
    low, high = _welch(numpy, stats, old, new, alpha)
    if len(set(before)) == 1 or len(set(after)) == 1:
        return low, high  # a side without spread has no BCa interval

    def ratio(first: Any, second: Any, axis: int = -1) -> Any:
        return second.mean(axis=axis) / first.mean(axis=axis)

    found = stats.bootstrap(
        (old, new),
        ratio,
        n_resamples=RESAMPLES,
        confidence_level=1 - alpha,
        method="BCa",
        vectorized=True,
        random_state=numpy.random.default_rng(seed),
    ).confidence_interval
    if math.isnan(found.low) or math.isnan(found.high):
        return low, high
    return min(low, float(found.low)), max(high, float(found.high))


def _welch(numpy: Any, stats: Any, old: Any, new: Any, alpha: float) -> tuple[float, float]:
    logs = (numpy.log(old), numpy.log(new))
    parts = [side.var(ddof=1) / len(side) for side in logs]
    error = math.sqrt(sum(parts))
    ratio = float(new.mean() / old.mean())
    if not error:
        return ratio, ratio
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, logs, strict=True)
    )
    reach = float(stats.t.ppf(1 - alpha / 2, freedom)) * error
    return ratio * math.exp(-reach), ratio * math.exp(reach)


def _p_value(before: Sequence[float], after: Sequence[float]) -> float:
    stats = load("scipy.stats")
    both = [*before, *after]
    if len(set(both)) == 1:
        return 1.0
    tied = len(set(both)) < len(both)
    if tied and math.comb(len(both), len(before)) <= RESAMPLES:
        return _tied_p_value(stats, before, after)
    exact = not tied and max(len(before), len(after)) <= EXACT_RESTARTS
    tested = stats.mannwhitneyu(before, after, method="exact" if exact else "asymptotic")
    return float(tested.pvalue)


def _tied_p_value(stats: Any, before: Sequence[float], after: Sequence[float]) -> float:
    """The exact one where figures are equal: over every way to deal them to the two sides."""
    middle = len(before) * len(after) / 2

    def off_middle(first: Any, second: Any, axis: int = -1) -> Any:  # noqa: ARG001 - scipy's
        below = (first[..., :, None] < second[..., None, :]).sum(axis=(-1, -2))
        equal = (first[..., :, None] == second[..., None, :]).sum(axis=(-1, -2))
        return abs(below + equal / 2 - middle)

    tested = stats.permutation_test(
        (before, after), off_middle, vectorized=True, n_resamples=math.inf, alternative="greater"
    )
    return float(tested.pvalue)


def _effect(
    before: Sequence[float], after: Sequence[float], alpha: float
) -> tuple[float | None, float | None, float | None]:
    count = len(before) + len(after)
    freedom = count - 2
    spread = sum(squares(side)[0] for side in (before, after))
    if spread <= 0:
        return None, None, None
    deviation = math.sqrt(spread / freedom)
    gap = math.fsum(after) / len(after) - math.fsum(before) / len(before)
    effect = (1 - 3 / (4 * freedom - 1)) * gap / deviation  # Hedges' correction for few samples
    error = math.sqrt(count / (len(before) * len(after)) + effect**2 / (2 * count))
    reach = float(load("scipy.stats").t.ppf(1 - alpha / 2, freedom)) * error
    return effect, effect - reach, effect + reach
