"""/metrics of vLLM: the families of a real 0.32.0 that tell of speed and load."""

from __future__ import annotations

from itertools import accumulate

from eagleops.sim.decoder import Decoder
from eagleops.sim.prometheus import family


def accepted_per_position(yields: list[int], drafts: int) -> list[int]:
    """Cycles in which the draft at each position was right.

    Args:
        yields: Cycles by the number of drafts that were right.
        drafts: Tokens drafted in a cycle.
    """
    at_least = list(accumulate(reversed(yields)))[::-1]
    return [at_least[right] if right < len(at_least) else 0 for right in range(1, drafts + 1)]


def render(model: str, decoder: Decoder, drafts: int) -> str:
    """The whole page."""
    labels = {"engine": "0", "model_name": model}
    total = decoder.totals
    counters = [
        ("prompt_tokens_total", "Number of prefill tokens processed.", total.prompt_tokens),
        ("generation_tokens_total", "Number of generation tokens processed.", total.tokens),
    ]
    if drafts:
        accepted = sum(accepted_per_position(decoder.yields, drafts))
        counters += [
            ("spec_decode_num_drafts_total", "Number of spec decoding drafts.", total.cycles),
            (
                "spec_decode_num_draft_tokens_total",
                "Number of draft tokens.",
                total.cycles * drafts,
            ),
            ("spec_decode_num_accepted_tokens_total", "Number of accepted tokens.", accepted),
        ]
    lines = []
    for name, about, value in (
        ("num_requests_running", "Number of requests in model execution batches.", decoder.running),
        ("num_requests_waiting", "Number of requests waiting to be processed.", 0),
        ("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", 0),
    ):
        lines += family(f"vllm:{name}", "gauge", about, [(labels, value)])
    for name, about, value in counters:
        lines += family(f"vllm:{name}", "counter", about, [(labels, value)])
    ended = [({**labels, "finished_reason": "length"}, float(total.requests))]
    about = "Count of successfully processed requests."
    lines += family("vllm:request_success_total", "counter", about, ended)
    if drafts:
        per_position = accepted_per_position(decoder.yields, drafts)
        lines += family(
            "vllm:spec_decode_num_accepted_tokens_per_pos_total",
            "counter",
            "Accepted tokens per draft position.",
            [({**labels, "position": str(at)}, count) for at, count in enumerate(per_position)],
        )
    for histogram, name, about in (
        (decoder.ttft, "time_to_first_token_seconds", "time to first token in seconds."),
        (decoder.gap, "inter_token_latency_seconds", "inter-token latency in seconds."),
        (decoder.latency, "e2e_request_latency_seconds", "e2e request latency in seconds."),
    ):
        lines += histogram.lines(f"vllm:{name}", f"Histogram of {about}", labels)
    return "\n".join([*lines, ""])
