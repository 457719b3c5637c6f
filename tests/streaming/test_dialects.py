"""Replies as engines stream them: what is counted, and by whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eagleops.measuring.speculation import (
    SGLANG_SOURCE,
    VLLM_SOURCE,
    Cycles,
    VllmCounters,
    of_reply,
    together,
)
from eagleops.streaming.dialects import Dialect, OpenAiCompletions, SglangGenerate, StreamError
from eagleops.streaming.prometheus import counter, totals
from eagleops.streaming.reply import Reply
from eagleops.streaming.sse import SseParser

STREAMS = Path(__file__).resolve().parents[1] / "data" / "streams"


def heard(dialect: Dialect, events: list[str], step_s: float = 0.1) -> Reply | None:
    """The reply of events that come ``step_s`` apart."""
    reader = dialect.reader()
    for number, data in enumerate(events, 1):
        reader.take(data, number * step_s)
    return reader.reply()


def captured(name: str) -> list[str]:
    """The events of a real stream."""
    events = SseParser().feed((STREAMS / f"{name}.sse").read_bytes())
    return [event.data for event in events if not event.is_done]


def generated(tokens: int, **meta: Any) -> str:
    """An event of /generate."""
    info = {"prompt_tokens": 12, "completion_tokens": tokens, "finish_reason": None, **meta}
    return json.dumps({"text": "x" * tokens, "meta_info": info})


def chunk(text: str = "x", *, usage: int | None = None, choices: int = 1, **more: Any) -> str:
    """An event of /v1/completions."""
    told = None if usage is None else {"prompt_tokens": 6, "completion_tokens": usage}
    choice = [{"index": 0, "text": text, "finish_reason": None, **more}]
    return json.dumps({"choices": choice[:choices], "usage": told})


def test_a_captured_reply_of_sglang_with_speculation() -> None:
    """Tokens, prompt and verify cycles are those of the last meta_info: 64 in 63 cycles."""
    reply = heard(SglangGenerate(), captured("eagle3_generate_stream"))

    counts = (
        reply.completion_tokens,
        reply.prompt_tokens,
        reply.verify_cycles,
        reply.cached_tokens,
    )
    assert counts == (64, 12, 63, 10)
    assert reply.finish_reason == "length"
    assert of_reply(reply) == Cycles(63, 64, SGLANG_SOURCE)
    assert of_reply(reply).accept_length == pytest.approx(64 / 63)


def test_a_captured_reply_of_sglang_without_speculation() -> None:
    """Without speculation there are no cycles, and none are made up."""
    reply = heard(SglangGenerate(), captured("baseline_generate_stream"))

    assert (reply.completion_tokens, reply.verify_cycles) == (64, None)
    assert of_reply(reply) is None


def test_a_captured_reply_in_openai_s_words() -> None:
    """The count is the usage's 16, though it comes in an event without text of its own."""
    reply = heard(OpenAiCompletions("x"), captured("eagle3_completions_stream"))

    assert (reply.completion_tokens, reply.prompt_tokens) == (16, 6)
    assert reply.finish_reason == "length"
    # The usage's event came last and brought no token: it is no moment of decoding.
    assert reply.last_s == pytest.approx(0.1 * (len(captured("eagle3_completions_stream")) - 1))


def test_bursts_are_counted_by_the_engine_and_not_by_events() -> None:
    """Ten events of three tokens each after a first of one: 30 tokens in a second."""
    events = [generated(1 + 3 * n) for n in range(11)]

    reply = heard(SglangGenerate(), events)

    assert (reply.completion_tokens, reply.first_tokens, reply.events) == (31, 1, 11)
    assert reply.tok_s == pytest.approx(30.0)


def test_a_first_event_of_several_tokens() -> None:
    """Tokens that came with the first event took no time that was measured."""
    reply = heard(SglangGenerate(), [generated(4), generated(8), generated(12)])

    assert (reply.first_tokens, reply.decoded_tokens) == (4, 8)
    assert reply.tok_s == pytest.approx(8 / 0.2)


@pytest.mark.parametrize("burst", [1, 5])
def test_events_that_come_together_took_no_time(burst: int) -> None:
    """A stream that was held up at its begin is measured from there on, and says it was held."""
    reader = SglangGenerate().reader()
    for tokens in range(1, burst + 1):
        reader.take(generated(tokens), 1.0 + tokens * 1e-5)
    for tokens in range(burst + 1, burst + 4):
        reader.take(generated(tokens), 1.0 + 0.1 * (tokens - burst))

    reply = reader.reply()

    assert (reply.first_tokens, reply.decoded_tokens, reply.moments) == (burst, 3, 4)
    assert reply.tok_s == pytest.approx(10.0, rel=0.01)
    assert reply.was_held_back is False


@pytest.mark.parametrize("dialect", [SglangGenerate(), OpenAiCompletions("m")])
def test_a_stream_that_comes_all_at_once_has_no_speed(dialect: Dialect) -> None:
    """31 tokens in half a millisecond are a buffer that was emptied, not a decoder."""
    event = generated if isinstance(dialect, SglangGenerate) else (lambda n: chunk(usage=n))
    reader = dialect.reader()
    for tokens in range(1, 33):
        reader.take(event(tokens), 0.15 + tokens * 1.6e-5)

    reply = reader.reply()

    assert (reply.completion_tokens, reply.moments, reply.tok_s) == (32, 1, None)
    assert reply.was_held_back is True


def test_counts_in_every_event_as_vllm_sends_them() -> None:
    """With counts in each event, one that adds no token is no moment of decoding."""
    events = [chunk("", usage=0), chunk(usage=2), chunk(usage=5), chunk("", usage=5)]

    reply = heard(OpenAiCompletions("m", each_event=True), events)

    assert (reply.first_tokens, reply.completion_tokens, reply.events) == (2, 5, 2)
    assert (reply.first_s, reply.last_s) == (pytest.approx(0.2), pytest.approx(0.3))


def test_a_server_that_sends_no_usage() -> None:
    """No count is told, so there is no speed: events are not tokens."""
    reply = heard(OpenAiCompletions("m"), [chunk(), chunk(), chunk(finish_reason="length")])

    assert (reply.completion_tokens, reply.tok_s, reply.events) == (None, None, 3)


def test_no_token_is_no_reply() -> None:
    """A stream that ends before its first token has no figures."""
    assert heard(SglangGenerate(), []) is None
    assert heard(OpenAiCompletions("m"), [chunk(usage=0, choices=0)]) is None


@pytest.mark.parametrize("dialect", [SglangGenerate(), OpenAiCompletions("m")])
@pytest.mark.parametrize(
    ("event", "words"),
    [
        ('{"error": {"message": "out of memory", "code": 500}}', "out of memory"),
        ('{"error": "busy"}', "busy"),
        ("not json", "an event that is no JSON: not json"),
        ("[1]", "an event that is no JSON object"),
    ],
)
def test_an_event_that_tells_of_an_error(dialect: Dialect, event: str, words: str) -> None:
    """The server's own words are the error's."""
    with pytest.raises(StreamError, match=words):
        dialect.reader().take(event, 0.1)


def test_a_text_that_speaks_of_errors_is_no_error() -> None:
    """Only the event's own key counts, not what the model says."""
    told = json.dumps({"text": '{"error": 1}', "meta_info": {"completion_tokens": 1}})

    assert heard(SglangGenerate(), [told]).completion_tokens == 1


def test_ignore_eos_is_asked_where_the_engine_has_it() -> None:
    """SGLang and vLLM go on past an end of text; a stranger is asked in OpenAI's words alone."""
    assert SglangGenerate().body("a", 9)["sampling_params"]["ignore_eos"] is True
    assert OpenAiCompletions("m").body("a", 9)["ignore_eos"] is True
    assert "ignore_eos" not in OpenAiCompletions("m", ignore_eos=False).body("a", 9)


def test_counters_are_summed_over_their_labels() -> None:
    """A captured page of SGLang's: comments passed over, values read, labels summed."""
    values = totals((STREAMS / "sglang-metrics.txt").read_text())

    assert counter(values, "sglang:spec_verify_calls") == 148.0
    assert counter(values, "sglang:no_such") is None
    assert totals('a{x="}"} 1\na{x="2"} 2 1700000000\nb NaN\n# c 1\nd one')["a"] == 3.0


def vllm(drafts: int, accepted: int, generated: int) -> VllmCounters:
    """The counters of a page of vLLM's."""
    page = (
        f'vllm:spec_decode_num_drafts_total{{engine="0"}} {drafts}\n'
        f'vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {accepted}\n'
        f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{position="0"}} 99\n'
        f'vllm:generation_tokens_total{{engine="0"}} {generated}\n'
    )
    return VllmCounters.of(totals(page))


def test_vllm_s_accept_length_is_of_differences() -> None:
    """1 + accepted / drafts since the run began: what was before does not count."""
    cycles = vllm(150, 220, 400).since(vllm(100, 180, 300))

    assert cycles == Cycles(50, 90, VLLM_SOURCE)
    assert cycles.accept_length == 1 + 40 / 50


def test_counters_that_are_not_told() -> None:
    """Without speculation, or without drafts meanwhile, there is no accept length."""
    plain = VllmCounters.of({"vllm:generation_tokens_total": 4.0})

    assert plain.since(plain) is None
    assert vllm(10, 5, 20).since(vllm(10, 5, 10)) is None
    assert VllmCounters.of({"sglang:x": 1.0}) is None


def test_all_runs_together_or_none() -> None:
    """The whole's accept length is the sums' quotient, and needs every run's counts."""
    runs = [Cycles(10, 20, "s"), Cycles(30, 40, "s")]

    assert together(runs) == Cycles(40, 60, "s")
    assert together([*runs, None]) is None
    assert together([]) is None
