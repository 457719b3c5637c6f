"""The token clock: what it promises, held for any settings."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.sim.clock import TokenClock
from eagleops.sim.settings import Settings, SimError

tok_s = st.floats(0.5, 5000)
requests = st.integers(0, 10_000)


@given(tok_s=tok_s, length=st.integers(1, 400), request=requests)
def test_a_plain_reply_has_one_token_a_step(tok_s: float, length: int, request: int) -> None:
    """The nth token is due n steps after the first: no drift, whatever the length."""
    clock = TokenClock.of(Settings(tok_s=tok_s, ttft_ms=50), drafts=0)

    ticks = list(clock.ticks(length, request))

    assert [tick.tokens for tick in ticks] == [1] * length
    for number, tick in enumerate(ticks):
        assert tick.due_s == pytest.approx(0.05 + number / tok_s)


@st.composite
def speculation(draw: st.DrawFn) -> tuple[float, int]:
    """An accept length and the drafts of a cycle that can yield it."""
    drafts = draw(st.integers(1, 7))
    return draw(st.floats(1, drafts + 1)), drafts


@given(spec=speculation(), cycles=st.integers(1, 500), request=requests)
def test_the_mean_of_any_number_of_cycles_is_the_accept_length(
    spec: tuple[float, int], cycles: int, request: int
) -> None:
    """After n cycles the tokens differ by less than two from n times the accept length."""
    accept_length, drafts = spec
    clock = TokenClock.of(Settings(cycle_ms=30.6, accept_length=accept_length), drafts)

    ticks = list(itertools.islice(clock.ticks(1 << 40, request), cycles + 1))

    yields = [tick.tokens for tick in ticks[1:]]
    assert abs(sum(yields) - cycles * accept_length) < 2
    assert all(1 <= tokens <= drafts + 1 for tokens in yields)
    assert ticks[-1].due_s - ticks[0].due_s == pytest.approx(cycles * 0.0306)


@given(spec=speculation(), length=st.integers(1, 300), request=requests)
def test_a_reply_has_exactly_the_tokens_asked_for(
    spec: tuple[float, int], length: int, request: int
) -> None:
    """The last cycle is cut, as an engine cuts it at max_new_tokens."""
    accept_length, drafts = spec
    clock = TokenClock.of(Settings(accept_length=accept_length), drafts)

    assert sum(tick.tokens for tick in clock.ticks(length, request)) == length


def test_cycles_yield_more_than_two_numbers() -> None:
    """An accept length of 1.84 with two drafts: one, two and three tokens all come."""
    clock = TokenClock.of(Settings(accept_length=1.84), drafts=2)

    yields = [tick.tokens for tick in clock.ticks(1000, 0)][1:]

    assert {1, 2, 3} == set(yields)


def test_speed_scales_the_clock() -> None:
    """Ten times as fast, the figures keep their relation."""
    slow = TokenClock.of(Settings(), drafts=2)
    fast = TokenClock.of(Settings(speed=10), drafts=2)

    assert fast.step_s == pytest.approx(slow.step_s / 10)
    assert fast.ttft_s == pytest.approx(slow.ttft_s / 10)


def test_a_slowdown_lengthens_each_step() -> None:
    """A throttled GPU: a step takes so many times longer."""
    clock = TokenClock.of(Settings(tok_s=100, ttft_ms=0), drafts=0)

    assert list(clock.ticks(3, 0, slowdown=2))[-1].due_s == pytest.approx(0.04)


def test_noise_varies_requests_and_is_reproducible() -> None:
    """A standard deviation of 2 % between requests, the same each time for one seed."""

    def paces(seed: int) -> list[float]:
        clock = TokenClock.of(Settings(tok_s=100, ttft_ms=0, noise_pct=2, seed=seed), drafts=0)
        return [1 / list(clock.ticks(2, request))[1].due_s for request in range(400)]

    assert paces(1) == paces(1)
    assert paces(1) != paces(2)
    assert statistics.fmean(paces(1)) == pytest.approx(100, rel=0.005)
    assert statistics.stdev(paces(1)) == pytest.approx(2, rel=0.15)


def test_an_accept_length_that_no_cycle_can_yield_is_refused() -> None:
    """Two drafts and the target's own token make three at most."""
    with pytest.raises(SimError, match=r"3\.5 is more than the 3 tokens"):
        TokenClock.of(Settings(accept_length=3.5), drafts=2)
