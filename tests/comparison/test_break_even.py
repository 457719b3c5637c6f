"""The sum that ends a hunt: when speculation pays."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.comparison import break_even as module
from eagleops.comparison.break_even import break_even
from eagleops.errors import UsageError

times = st.floats(0.1, 1000, allow_nan=False)
lengths = st.floats(1, 20, allow_nan=False)


def test_the_case_that_cost_days() -> None:
    """82.2 tok/s and cycles of 30.6 ms need 2.52 accepted tokens; 1.84 do not pay."""
    told = break_even(baseline_tok_s=82.2, cycle_ms=30.6, accept_length=1.84, num_draft_tokens=3)

    assert round(told.needed_accept_length, 2) == 2.52
    assert told.pays is False
    assert told.margin == pytest.approx(-0.675, abs=0.001)
    assert told.can_pay is True
    assert told.ceiling_tok_s == pytest.approx(98.04, abs=0.01)
    assert [round(speed, 1) for _, speed in told.curve] == [32.7, 65.4, 98.0]
    assert told.conclusion == (
        "A cycle takes 30.6 ms and a plain step 12.2 ms, so it needs 2.52 accepted tokens a cycle "
        "to break even; it has 1.84: speculation does not pay (60.1 against 82.2 tok/s)."
    )


def test_no_drafter_can_pay_where_a_cycle_costs_more_than_it_can_yield() -> None:
    """With one draft step a cycle yields at most 2 tokens: a cycle of 3 plain steps never pays."""
    told = break_even(baseline_step_ms=10, cycle_ms=30, num_draft_tokens=2)

    assert (told.can_pay, told.pays) == (False, None)
    assert told.view().notes[0].text == (
        "A perfect drafter would reach 66.7 tok/s (-33.3 %) with 2 tokens a cycle: "
        "at this cycle time none can pay."
    )


def test_a_cycle_is_the_sum_of_its_parts() -> None:
    """Where draft and verify were measured one by one, the cycle needs no number of its own."""
    told = break_even(baseline_tok_s=82.2, draft_ms=1.6, verify_ms=29.0)

    assert told.cycle_ms == pytest.approx(30.6)


@given(step_ms=times, cycle_ms=times, length=lengths)
def test_the_needed_length_is_where_both_speeds_are_equal(step_ms, cycle_ms, length) -> None:
    """At the needed accept length the speeds agree, and above it, only there, speculation pays."""
    told = break_even(baseline_step_ms=step_ms, cycle_ms=cycle_ms, accept_length=length)

    assert told.speed_at(told.needed_accept_length) == pytest.approx(told.baseline_tok_s)
    if not math.isclose(length, told.needed_accept_length, rel_tol=1e-9):
        assert told.pays == (told.speed_at(length) > told.baseline_tok_s)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"cycle_ms": 30.6}, "--baseline-tps: the speed without speculation is missing"),
        ({"baseline_tok_s": 82.2}, "--cycle-ms: the time of one cycle is missing"),
        ({"baseline_tok_s": -1.0, "cycle_ms": 1}, "--baseline-tps: it must be above 0, not -1"),
        ({"baseline_tok_s": 1.0, "cycle_ms": math.nan}, "--cycle-ms: it must be above 0, not nan"),
        (
            {"baseline_tok_s": 1.0, "cycle_ms": 1.0, "accept_length": 0.4},
            "--accept-length: it counts the target's own token: at least 1, not 0.4",
        ),
        (
            {"baseline_tok_s": 1.0, "cycle_ms": 1.0, "accept_length": 3.5, "num_draft_tokens": 3},
            "--accept-length: a cycle cannot yield 3.5 of 3 tokens",
        ),
    ],
)
def test_a_number_that_cannot_be_is_refused(given_, message) -> None:
    """A missing, negative or impossible number is a usage error that names its flag."""
    with pytest.raises(UsageError) as refused:
        break_even(**given_)

    assert str(refused.value).splitlines() == [
        message,
        "For example: eagleops break-even --baseline-tps 82.2 --cycle-ms 30.6.",
    ]


def test_the_example_in_the_docstring_holds() -> None:
    """What the derivation shows is what the code gives."""
    assert doctest.testmod(module).failed == 0
