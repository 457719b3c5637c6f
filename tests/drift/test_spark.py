"""A series in one line."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from drift.nights import points_of
from eagleops.drift.spark import BARS, CHANGE, LEFT_OUT, spark


def test_bars_are_as_high_as_the_values() -> None:
    """The lowest is the lowest bar, the highest the highest."""
    assert spark(points_of([(1, 50.0), (2, 75.0), (3, 100.0)])) == "▁▅█"


def test_noise_is_no_mountain_range() -> None:
    """A figure that is steady within a percent is drawn as a nearly flat line."""
    drawn = spark(points_of([(n, 88.8 + 0.3 * (n % 2)) for n in range(1, 20)]))

    assert len(set(drawn)) <= 2
    assert not set(drawn) & {BARS[0], BARS[-1]}


def test_one_odd_run_does_not_press_the_others_flat() -> None:
    """A step of 7 % is seen beside a night of -50 %."""
    nights = [(n, 88.8 if n < 30 else 82.6) for n in range(1, 60)]
    nights[40] = (41, 44.0)

    assert spark(points_of(nights)) == BARS[-1] * 29 + BARS[0] * 30


def test_a_change_and_what_is_left_out_are_marked() -> None:
    """The mark stands before the first run of the new level."""
    points = list(points_of([(n, 100.0 if n < 4 else 50.0) for n in range(1, 7)]))
    points[1] = attrs.evolve(points[1], excluded="throttled")

    assert spark(points, [points[3]]) == f"█{LEFT_OUT}█{CHANGE}▁▁▁"


def test_equal_values_and_none_at_all_are_drawn() -> None:
    """No height to divide by is no error."""
    points = points_of([(n, 5.0) for n in range(1, 4)])

    assert spark(points) == "▅▅▅"
    assert spark([attrs.evolve(point, excluded="hot") for point in points]) == LEFT_OUT * 3
    assert spark([]) == ""


@given(
    values=st.lists(st.floats(1e-6, 1e9), max_size=200),
    width=st.integers(1, 90),
    marks=st.integers(0, 3),
)
def test_it_is_never_wider_than_asked(values: list[float], width: int, marks: int) -> None:
    """Neighbours share a bar where there are more runs than room."""
    points = points_of(list(enumerate(values, 1)))
    drawn = spark(points, points[:marks], width)

    assert len(drawn) <= max(width, 1 + marks)
    assert set(drawn) <= {*BARS, CHANGE, LEFT_OUT}
