"""A bench's runs with what was off in each of them, in words."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from eagleops.measuring import findings
from eagleops.workflows.bench_result import Run
from eagleops.workflows.bench_subject import Subject

# A first token that comes 5 ms late is a hundredth of so short a run.
BRIEF_S = 0.5


def noted(runs: Sequence[Run], subject: Subject) -> tuple[Run, ...]:
    """``runs`` with their notes: throttling, PCIe links, clocks, replies that ended early."""
    usual = findings.usual_clocks([run.gpus for run in runs])
    return tuple(
        attrs.evolve(
            run,
            throttling=findings.throttling(run.number, run.gpus),
            off=(
                *findings.links(run.number, run.gpus, subject.links),
                *findings.clocks(run.number, run.gpus, usual),
                *_cached(run),
                *_short(run, runs),
                *_brief(run),
                *_held_back(run),
            ),
        )
        for run in runs
    )


def _cached(run: Run) -> tuple[str, ...]:
    cached, whole = run.reply.cached_tokens, run.reply.prompt_tokens
    # A tokenizer's own first tokens are cached whatever the prompt is.
    if not cached or not whole or cached * 2 < whole:
        return ()
    return (f"run {run.number}: {cached} of {whole} prompt tokens came from a cache (see TTFT)",)


def _short(run: Run, runs: Sequence[Run]) -> tuple[str, ...]:
    most = max(one.reply.completion_tokens or 0 for one in runs)
    tokens = run.reply.completion_tokens or 0
    if tokens >= most:
        return ()
    reason = run.reply.finish_reason or "no reason told"
    return (f"run {run.number} ended after {tokens} tokens ({reason}), not {most}",)


def _brief(run: Run) -> tuple[str, ...]:
    seconds = run.reply.decode_s
    if seconds >= BRIEF_S:
        return ()
    return (f"run {run.number} lasted {seconds:.2f} s: ask for more tokens to measure finely",)


def _held_back(run: Run) -> tuple[str, ...]:
    reply = run.reply
    if not reply.was_held_back:
        return ()
    came = f"{reply.events} events came at {reply.moments} moments"
    why = "something on the way held them back, and the speed is not the engine's"
    return (f"run {run.number}: {came}: {why}",)
