"""Medians and their intervals."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.statistics import Interval, median_interval

SAMPLES = st.lists(st.floats(0.1, 1e4), min_size=1, max_size=40)


def test_five_runs_give_their_range_and_say_what_it_is_worth() -> None:
    """Five samples cannot give 95 %: the whole range is a 93.75 % interval."""
    made = median_interval([82.0, 80.0, 81.0, 84.0, 83.0])

    assert made == Interval(82.0, 80.0, 84.0, (82.0, 80.0, 81.0, 84.0, 83.0), 0.9375)


@pytest.mark.parametrize(
    ("count", "rank", "confidence"),
    # Tables of the sign test's confidence interval, for example Hahn and Meeker's A.15.
    [(6, 1, 0.9688), (9, 2, 0.9609), (12, 3, 0.9614), (20, 6, 0.9586), (30, 10, 0.9572)],
)
def test_ranks_are_those_of_the_tables(count: int, rank: int, confidence: float) -> None:
    """The narrowest pair of order statistics that holds the median in 95 % of cases."""
    made = median_interval([float(n) for n in range(1, count + 1)])

    assert (made.low, made.high) == (rank, count + 1 - rank)
    assert made.confidence == pytest.approx(confidence, abs=1e-4)


def test_one_sample_has_no_interval() -> None:
    """One run says nothing of its scatter, and claims nothing."""
    assert median_interval([82.2]) == Interval(82.2, 82.2, 82.2, (82.2,), 0.0)


def test_no_sample_is_an_error() -> None:
    """A median of nothing is none."""
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])


@given(SAMPLES)
def test_the_interval_holds_the_median(samples: list[float]) -> None:
    """Whatever the samples: low <= median <= high, and all three are within their range."""
    made = median_interval(samples)

    assert min(samples) <= made.low <= made.median <= made.high <= max(samples)
    assert made.median == statistics.median(samples)
    assert made.samples == tuple(samples)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    """Of 2000 benches of 10 runs each, with a skewed scatter, at least 95 % hold the truth."""
    draw = random.Random(7)
    truth = 82.2
    held = 0
    for _ in range(2000):
        runs = [truth * draw.lognormvariate(0, 0.02) for _ in range(10)]
        made = median_interval(runs)
        held += made.low <= truth <= made.high

    assert held / 2000 >= 0.95
