"""Speculative decoding's figures, from what the engine itself counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from eagleops.streaming.prometheus import counter
from eagleops.streaming.reply import Reply

NOT_REPORTED = "not reported"
SGLANG_SOURCE = "sum(completion_tokens) / sum(spec_verify_ct), each reply's meta_info"
VLLM_SOURCE = "1 + accepted / drafts, differences of the counters at /metrics"

_DRAFTS = "vllm:spec_decode_num_drafts"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens"
_GENERATED = "vllm:generation_tokens"
_RUNNING = "vllm:num_requests_running"


@attrs.frozen
class Cycles:
    """Verify cycles of some replies, and the tokens that the accept length counts for them.

    Attributes:
        tokens: The target's own token of each cycle counted in.
    """

    cycles: int
    tokens: float
    source: str

    @property
    def accept_length(self) -> float:
        """Tokens per cycle."""
        return self.tokens / self.cycles

    def cycle_ms(self, decode_s: float) -> float:
        """What one cycle took, where all of them took ``decode_s``."""
        return 1000 * decode_s / self.cycles


def of_reply(reply: Reply) -> Cycles | None:
    """What SGLang's ``meta_info`` told; None where it told nothing."""
    if not reply.verify_cycles or reply.completion_tokens is None:
        return None
    return Cycles(reply.verify_cycles, reply.completion_tokens, SGLANG_SOURCE)


@attrs.frozen
class VllmCounters:
    """vLLM's counters at one moment.

    Attributes:
        drafts: Verify cycles; None without speculation.
        accepted: Drafted tokens that were accepted.
        running: Requests in work at this moment.
    """

    drafts: float | None
    accepted: float | None
    generated: float
    running: float

    @classmethod
    def of(cls, values: Mapping[str, float]) -> VllmCounters | None:
        """From a page of /metrics; None where it is not vLLM's."""
        metrics = dict(values)
        generated = counter(metrics, _GENERATED)
        if generated is None:
            return None
        return cls(
            counter(metrics, _DRAFTS),
            counter(metrics, _ACCEPTED),
            generated,
            metrics.get(_RUNNING, 0.0),
        )

    def since(self, before: VllmCounters) -> Cycles | None:
        """The cycles since an earlier moment; None where none were counted."""
        if None in (self.drafts, self.accepted, before.drafts, before.accepted):
            return None
        drafts = round((self.drafts or 0.0) - (before.drafts or 0.0))
        accepted = (self.accepted or 0.0) - (before.accepted or 0.0)
        return Cycles(drafts, drafts + accepted, VLLM_SOURCE) if drafts > 0 else None


def together(counted: Iterable[Cycles | None]) -> Cycles | None:
    """All cycles of several runs; None if one of them told none."""
    found = list(counted)
    told = [one for one in found if one is not None]
    if not told or len(told) < len(found):
        return None
    return Cycles(sum(c.cycles for c in told), sum(c.tokens for c in told), told[0].source)
