"""The pace of real streams: what a client measures is what the profile says."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from sim.simulated import EAGLE3, VLLM, SimServer

pytestmark = pytest.mark.alone


def pace(server: SimServer, tokens: int) -> tuple[float, dict]:
    """Tokens a second between the first and the last of a reply, and its last meta_info."""
    body = {"text": "a", "sampling_params": {"max_new_tokens": tokens}}
    came = [
        (at, json.loads(data)) for at, data in server.events("/generate", body) if data[0] == "{"
    ]
    counts = [reply["meta_info"]["completion_tokens"] for _, reply in came]
    assert counts[-1] == tokens
    return (counts[-1] - counts[0]) / (came[-1][0] - came[0][0]), came[-1][1]["meta_info"]


@pytest.mark.parametrize(("tok_s", "tokens"), [(20.0, 60), (82.2, 250), (400.0, 1200)])
def test_plain_decoding_has_the_pace_of_the_profile(
    launch: Callable[..., SimServer], tok_s: float, tokens: int
) -> None:
    """Within 0.5 %, as the client sees it, and as the engine says itself."""
    server = launch(sim={"tok_s": tok_s})

    measured, meta = pace(server, tokens)

    assert measured == pytest.approx(tok_s, rel=0.005)
    assert meta["decode_throughput"] == pytest.approx(tok_s, rel=0.005)


def test_speculative_decoding_has_cycle_time_and_accept_length(
    launch: Callable[..., SimServer],
) -> None:
    """The team's case: 30.6 ms a cycle, 1.84 tokens in it, 60.1 tok/s."""
    server = launch(*EAGLE3, sim={"cycle_ms": 30.6, "accept_length": 1.84})

    measured, meta = pace(server, 184)

    cycle_ms = 1000 * (184 - 1) / meta["decode_throughput"] / meta["spec_verify_ct"]
    assert cycle_ms == pytest.approx(30.6, rel=0.005)
    assert (184 - 1) / meta["spec_verify_ct"] == pytest.approx(1.84, rel=0.02)
    assert measured == pytest.approx(1.84 / 0.0306, rel=0.02)
    assert meta["spec_accept_length"] == 184 / meta["spec_verify_ct"]


def test_the_time_to_the_first_token_is_the_profiles(launch: Callable[..., SimServer]) -> None:
    """Counted from the request."""
    server = launch(sim={"ttft_ms": 150})

    _, reply = server.post("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 1}})

    assert reply["meta_info"]["e2e_latency"] == pytest.approx(0.15, abs=0.02)


def test_several_streams_keep_their_pace(launch: Callable[..., SimServer]) -> None:
    """Each request has a clock of its own."""
    server = launch(sim={"tok_s": 82.2})
    body = {"text": "a", "sampling_params": {"max_new_tokens": 90}}
    streams = [server.events("/generate", body) for _ in range(3)]
    firsts = [next(stream)[0] for stream in streams]

    lasts = [[at for at, data in stream if data != "[DONE]"][-1] for stream in streams]

    paces = [89 / (last - first) for first, last in zip(firsts, lasts, strict=True)]
    assert paces[0] == pytest.approx(82.2, rel=0.02)


def test_a_slow_gpu_slows_its_server(box, launch: Callable[..., SimServer]) -> None:
    """A server goes at the pace of its slowest GPU; the others' faults do not matter."""
    server = launch("--tp-size", "2", sim={"tok_s": 200.0})
    box.break_gpu(1, speed=0.5, throttle_reasons=["sw_power_cap"])
    box.break_gpu(7, speed=0.1)

    assert pace(server, 120)[0] == pytest.approx(100, rel=0.01)


def test_vllm_keeps_the_same_clock(launch: Callable[..., SimServer]) -> None:
    """Within 0.5 %, too."""
    server = launch(argv=VLLM, sim={"tok_s": 82.2})

    came = [at for at, _ in server.events("/v1/completions", {"prompt": "a", "max_tokens": 200})]

    assert 199 / (came[-2] - came[0]) == pytest.approx(82.2, rel=0.005)
