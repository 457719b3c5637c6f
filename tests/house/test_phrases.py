"""Numbers, lists and times are said in one way everywhere."""

from __future__ import annotations

import pytest

from eagleops.phrases import counted, listed, minute, some


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "night", "0 nights"),
        (1, "night", "1 night"),
        (2, "process", "2 processes"),
        (1, "process", "1 process"),
        (1024, "check", "1,024 checks"),
    ],
)
def test_a_number_of_things_has_its_plural(number: int, noun: str, said: str) -> None:
    """And its thousands apart."""
    assert counted(number, noun) == said


def test_a_list_is_read_aloud() -> None:
    """With an ``and`` before the last."""
    assert [listed(list("abc"[:count])) for count in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_of_many_some_are_named_and_the_others_are_counted() -> None:
    """None is left out without a word."""
    assert [some(list("abcd"), most) for most in (2, 3, 4, 9)] == [
        "a, b and 2 more",
        "a, b, c and 1 more",
        "a, b, c, d",
        "a, b, c, d",
    ]


def test_a_time_is_read_to_the_minute() -> None:
    """With its zone, which is always the same."""
    assert minute("2026-10-02T02:30:59.123Z") == "2026-10-02 02:30 UTC"
