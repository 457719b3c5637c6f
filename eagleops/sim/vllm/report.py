"""vLLM's statistics in its log: a line each ten seconds while there is something to tell."""

from __future__ import annotations

import time

from eagleops.sim.decoder import Decoder
from eagleops.sim.vllm.log import Log
from eagleops.sim.vllm.metrics import accepted_per_position

INTERVAL_S = 10.0


def report_statistics(decoder: Decoder, log: Log) -> None:
    """Logs without end."""
    before, yields = decoder.totals, list(decoder.yields)
    while True:
        time.sleep(INTERVAL_S)
        now, now_yields = decoder.totals, list(decoder.yields)
        since = now.since(before)
        if not since.requests and not decoder.running:
            continue
        log(
            "loggers.py:335",
            f"Engine 000: Avg prompt throughput: {since.prompt_tokens / INTERVAL_S:.1f} tokens/s, "
            f"Avg generation throughput: {since.tokens / INTERVAL_S:.1f} tokens/s, "
            f"Running: {decoder.running} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, "
            "Prefix cache hit rate: 0.0%",
        )
        if since.cycles:
            drafts = decoder.most - 1
            news = accepted_per_position(now_yields, drafts)
            olds = accepted_per_position(yields, drafts)
            accepted = [new - old for new, old in zip(news, olds, strict=True)]
            log("metrics.py:121", spec_decoding(since.cycles, drafts, accepted))
        before, yields = now, now_yields


def spec_decoding(cycles: int, drafts: int, accepted: list[int]) -> str:
    """The line on speculative decoding.

    Args:
        cycles: In the interval.
        drafts: Tokens drafted in each.
        accepted: Drafts that were right, by their position.
    """
    total, drafted = sum(accepted), cycles * drafts
    rates = ", ".join(f"{count / cycles:.3f}" for count in accepted)
    return (
        f"SpecDecoding metrics: Mean acceptance length: {1 + total / cycles:.2f}, "
        f"Accepted throughput: {total / INTERVAL_S:.2f} tokens/s, "
        f"Drafted throughput: {drafted / INTERVAL_S:.2f} tokens/s, Accepted: {total} tokens, "
        f"Drafted: {drafted} tokens, Per-position acceptance rate: {rates}, "
        f"Avg Draft acceptance rate: {100 * total / drafted:.1f}%"
    )
