"""A limit against one pinned run."""

from __future__ import annotations

import pytest

from drift.nights import points_of
from eagleops.drift.reference import against
from eagleops.drift.series import Point, Series

PINNED = Point("2026-09-01T02:30:00Z", 88.8, 42)


def series(*values: float, metric: str = "tok_s") -> Series:
    """A series of these values."""
    return Series("box", "p", metric, "tok/s", points_of(list(enumerate(values, 1))))


def test_the_latest_run_keeps_up_within_the_limit() -> None:
    """5 % below 88.8 are 84.36: that passes, less does not."""
    assert against(series(60.0, 84.4), PINNED).ok
    held = against(series(88.8, 84.3), PINNED)

    assert not held.ok
    assert held.limit == pytest.approx(84.36)
    assert held.change_pct == pytest.approx(-5.07, abs=0.01)
    assert held.words == (
        "84.3 tok/s, -5.1 % against run 42, which is pinned (88.8 tok/s): beyond the limit of 5 %."
    )


def test_a_time_may_not_be_longer_than_its_limit() -> None:
    """Where lower is better, the limit lies above."""
    assert against(series(93.0, metric="cycle_ms"), PINNED).ok
    assert not against(series(93.5, metric="cycle_ms"), PINNED).ok
    assert against(series(60.0, metric="cycle_ms"), PINNED).ok


def test_without_a_run_that_counts_nothing_is_held_against_it() -> None:
    """No point is no fault; the words say so."""
    held = against(series(), PINNED, 2)

    assert held.ok
    assert held.to_dict()["latest"] is None
    assert held.words == (
        "No run counts that could be held against run 42, which is pinned (88.8 tok/s)."
    )
