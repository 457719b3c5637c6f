"""What two sets of restarts say of each other, and how sure it is."""

from __future__ import annotations

import itertools
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleops.comparison.difference import Difference, difference
from eagleops.comparison.planning import (
    holm,
    restarts_for_precision,
    restarts_to_reach,
    spread_pct,
)
from eagleops.errors import UsageError
from eagleops.sim.clock import TokenClock
from eagleops.sim.settings import Settings

pytest.importorskip("scipy", reason="the [stats] extra is not installed")

TOKENS = 64
NOISE_PCT = 3.0

speeds = st.lists(st.floats(1, 1000, allow_nan=False), min_size=3, max_size=8)


def restarts(count: int, first_seed: int, tok_s: float) -> list[float]:
    """What ``count`` restarts of a simulated server measure: its token clock, read at once."""
    found = []
    for seed in range(first_seed, first_seed + count):
        settings_ = Settings(tok_s=tok_s, noise_pct=NOISE_PCT, seed=seed)
        ticks = list(TokenClock.of(settings_, 0).ticks(TOKENS, request=0))
        found.append((len(ticks) - 1) / (ticks[-1].due_s - ticks[0].due_s))
    return found


def compared(number: int, true_change: float) -> Difference:
    """One of the comparisons of ten restarts against ten."""
    return difference(
        restarts(10, number * 20, 82.2), restarts(10, number * 20 + 10, 82.2 * (1 + true_change))
    )


def test_a_true_regression_of_7_percent_is_found() -> None:
    """With 3 % noise, at least 95 of 100 comparisons of 10 restarts show a 7 % regression."""
    found = sum(compared(number, -0.07).conclusion == "slower" for number in range(100))

    assert found >= 95


def test_equal_profiles_give_few_false_alarms() -> None:
    """With no difference, at most 5 of 100 comparisons tell of one."""
    alarms = sum(
        compared(number, 0.0).conclusion != "no_difference_shown" for number in range(100, 200)
    )

    assert alarms <= 5


def test_the_interval_holds_the_true_change() -> None:
    """At least 90 of 100 intervals of 95 % hold it, with five restarts against five too."""
    held = 0
    for number in range(100):
        one = difference(
            restarts(5, 9000 + number * 10, 82.2), restarts(5, 9005 + number * 10, 60.0)
        )
        held += (one.low_pct or 0) <= 100 * (60.0 / 82.2 - 1) <= (one.high_pct or 0)

    assert held >= 90


def test_three_against_three_claims_nothing() -> None:
    """However far apart, three restarts a side cannot reach p < 0.05, so nothing is claimed."""
    one = difference([82.0, 82.2, 82.4], [60.0, 60.2, 59.8])

    assert (one.p_value, one.conclusion) == (pytest.approx(0.1), "no_difference_shown")
    assert round(one.change_pct, 1) == -27.0


def test_one_restart_gives_no_interval() -> None:
    """A single restart knows nothing of its own spread."""
    one = difference([82.2], [60.0])

    assert (one.low_pct, one.high_pct, one.p_value, one.effect) == (None, None, None, None)
    assert one.conclusion == "no_difference_shown"


def test_a_difference_too_small_to_matter_is_none() -> None:
    """One percent, however certain, is below the smallest that matters; and equality is shown."""
    before = [100.0, 100.01, 100.02, 100.03, 100.04, 100.05]
    one = difference(before, [0.99 * speed for speed in before])

    assert one.p_value is not None
    assert one.p_value < 0.01
    assert (one.conclusion, one.shows_equality) == ("no_difference_shown", True)


def test_a_difference_that_matters_more_finely_can_be_asked_for() -> None:
    """With a smallest difference of half a percent, one percent is told."""
    before = [100.0, 100.01, 100.02, 100.03, 100.04, 100.05]
    one = difference(before, [0.99 * speed for speed in before], smallest_pct=0.5)

    assert one.conclusion == "slower"


def test_the_effect_has_an_interval() -> None:
    """Hedges' g and its interval, against a case worked out by hand."""
    one = difference([10.0, 11.0, 12.0, 13.0, 14.0], [12.0, 13.0, 14.0, 15.0, 16.0])

    assert one.effect == pytest.approx(2 / 2.5**0.5 * (1 - 3 / 31), abs=1e-9)
    assert one.effect_low is not None
    assert one.effect_high is not None
    assert one.effect_low < 0 < one.effect < one.effect_high


def test_equal_figures_are_no_difference() -> None:
    """A box without noise gives the same figure each time: no spread, p of one, no effect."""
    one = difference([82.2] * 4, [82.2] * 4)

    assert (one.change_pct, one.low_pct, one.high_pct) == (0.0, 0.0, 0.0)
    assert (one.p_value, one.effect, one.conclusion) == (1.0, None, "no_difference_shown")


def test_tied_figures_are_tested_exactly() -> None:
    """Where figures are equal the test counts every way to deal them: here 2 of 70."""
    one = difference([82.2] * 4, [60.0] * 4)

    assert one.p_value == pytest.approx(2 / 70)
    assert one.conclusion == "slower"


@settings(max_examples=25, deadline=None)
@given(before=speeds, after=speeds)
def test_the_interval_surrounds_the_change(before, after) -> None:
    """Whatever the figures, the change lies in its interval and p is a probability."""
    one = difference(before, after)

    assert one.low_pct is not None
    assert one.high_pct is not None
    assert one.low_pct <= one.change_pct + 1e-6
    assert one.change_pct <= one.high_pct + 1e-6
    assert one.p_value is not None
    assert 0 <= one.p_value <= 1


@settings(max_examples=25, deadline=None)
@given(before=speeds, after=speeds, scale=st.floats(0.01, 100))
def test_the_unit_does_not_matter(before, after, scale) -> None:
    """Milliseconds or seconds: the change in percent and the conclusion's test are the same."""
    one = difference(before, after)
    other = difference([x * scale for x in before], [x * scale for x in after])

    assert other.change_pct == pytest.approx(one.change_pct, abs=1e-6)


def test_the_same_numbers_give_the_same_answer() -> None:
    """The bootstrap draws from a seed, so that a report can be made again."""
    draw = random.Random(1)
    before, after = ([draw.gauss(80, 3) for _ in range(6)] for _ in range(2))

    assert difference(before, after) == difference(before, after)


@pytest.mark.parametrize(("alpha", "count"), [(0.05, 4), (0.025, 5), (0.01, 5), (0.001, 7)])
def test_restarts_until_a_test_can_show_anything(alpha, count) -> None:
    """Below these numbers no difference whatever could be significant."""
    assert restarts_to_reach(alpha) == count


def test_restarts_for_a_precision() -> None:
    """With 3 % of spread the change is known to plus or minus 2 % after 19 restarts a side."""
    assert restarts_for_precision(3.0, 2.0) == 19
    assert restarts_for_precision(0.0, 2.0) == 4


def test_the_spread_is_pooled_over_both_sides() -> None:
    """Each side's spread is around its own mean: a difference is no spread."""
    assert spread_pct([100.0, 100.0], [50.0, 50.0]) == 0.0
    assert spread_pct([100.0], [50.0]) is None
    assert spread_pct([97.0, 103.0], [48.5, 51.5]) == pytest.approx(4.24, abs=0.02)


def test_holm_holds_the_smallest_p_against_the_strictest_level() -> None:
    """After the first that fails, none passes."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.05 / 3, 0.025, 0.025))
    assert holm([None, 0.001]) == pytest.approx((0.05, 0.025))
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_never_laxer_than_one_comparison(p_values) -> None:
    """No level is above alpha, and what passes at a level has the smaller p."""
    levels = holm(p_values)

    assert all(0 < level <= 0.05 for level in levels)
    passed = [p for p, level in zip(p_values, levels, strict=True) if p < level]
    failed = [p for p, level in zip(p_values, levels, strict=True) if p >= level]
    assert all(p <= q for p, q in itertools.product(passed, failed))


def test_without_scipy_the_way_out_is_named(monkeypatch) -> None:
    """The error holds the line that installs it."""
    monkeypatch.setitem(sys.modules, "scipy.stats", None)

    with pytest.raises(UsageError) as refused:
        restarts_for_precision(3.0)

    assert str(refused.value) == (
        "scipy is not installed, and a comparison's statistics need it\n"
        "pip install 'eagleops[stats]'"
    )
    assert refused.value.exit_status == 2
