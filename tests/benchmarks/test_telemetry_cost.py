"""What it costs a measurement that the GPUs are watched beside it."""

from __future__ import annotations

import statistics

import pytest

from bench.conftest import Serve, make_place, served

__all__ = ["make_place", "served"]

pytestmark = pytest.mark.alone

ROUNDS = 10
TOKENS = 165
LIMIT_PCT = 0.5


def test_watching_the_gpus_costs_less_than_half_a_percent(served: Serve) -> None:
    """Decode speed with and without telemetry, in turns, so that a busy moment meets both."""
    server = served(tok_s=82.2)
    server.bench(tokens=TOKENS)
    speeds: dict[bool, list[float]] = {True: [], False: []}
    for number in range(ROUNDS):
        for watched in (True, False) if number % 2 else (False, True):
            result = server.bench(tokens=TOKENS, sample=watched)
            speeds[watched].append(result.tok_s.median)

    with_it, without = (statistics.median(speeds[watched]) for watched in (True, False))
    cost_pct = 100 * (without / with_it - 1)
    print(f"{without:.3f} tok/s without, {with_it:.3f} with: telemetry costs {cost_pct:.3f} %")
    assert cost_pct < LIMIT_PCT
