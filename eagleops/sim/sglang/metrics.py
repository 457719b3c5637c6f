"""/metrics of SGLang: the families of a real 0.5.17 that tell of speed and load."""

from __future__ import annotations

from eagleops.sim.decoder import Decoder
from eagleops.sim.memory import Plan
from eagleops.sim.prometheus import family
from eagleops.sim.sglang.arguments import Arguments
from eagleops.sim.sglang.info import Info


def render(arguments: Arguments, plan: Plan, decoder: Decoder, info: Info) -> str:
    """The whole page."""
    model = {"engine_type": "unified", "model_name": str(arguments["served_model_name"])}
    rank = {**model, "moe_ep_rank": "0", "pp_rank": "0", "tp_rank": "0"}
    total = decoder.totals
    accept = info.accept_length or 0.0
    steps = int(arguments["speculative_num_steps"] or 0)
    drafts = int(arguments["speculative_num_draft_tokens"] or 0)
    rate = (accept - 1) / (drafts - 1) if accept and drafts > 1 else 0.0
    counters = (
        ("prompt_tokens_total", "Number of prefill tokens processed.", total.prompt_tokens),
        ("generation_tokens_total", "Number of generation tokens processed.", total.tokens),
        ("num_requests_total", "Number of requests processed.", total.requests),
        (
            "spec_verify_calls_total",
            "Number of speculative decoding verification calls.",
            total.cycles,
        ),
    )
    gauges = (
        ("num_running_reqs", "The number of running requests.", decoder.running),
        ("num_queue_reqs", "The number of requests in the waiting queue.", 0),
        ("token_usage", "The token usage.", 0.0),
        ("gen_throughput", "The generation throughput (token/s).", decoder.pace_tok_s),
        (
            "max_total_num_tokens",
            "Maximum total number of tokens in the KV cache pool.",
            plan.tokens,
        ),
        (
            "spec_accept_length",
            "Mean acceptance length of speculative decoding.",
            accept,
        ),
        (
            "spec_accept_rate",
            "Speculative acceptance rate (`accepted drafts / proposed drafts` in batch).",
            rate,
        ),
        ("spec_num_steps", "Currently active speculative_num_steps.", steps),
        ("spec_num_draft_tokens", "Currently active speculative_num_draft_tokens.", drafts),
    )
    lines = []
    for name, about, count in counters:
        lines += family(f"sglang:{name}", "counter", about, [(model, count)])
    for name, about, level in gauges:
        lines += family(f"sglang:{name}", "gauge", about, [(rank, level)])
    for histogram, name, about in (
        (decoder.ttft, "time_to_first_token_seconds", "time to first token in seconds."),
        (decoder.latency, "e2e_request_latency_seconds", "End-to-end request latency in seconds"),
        (decoder.gap, "inter_token_latency_seconds", "inter-token latency in seconds."),
    ):
        lines += histogram.lines(f"sglang:{name}", f"Histogram of {about}", model)
    return "\n".join([*lines, ""])
