"""What SGLang tells of itself: /server_info, /model_info, /v1/models."""

from __future__ import annotations

import time
from typing import Any

from eagleops.sim.decoder import Decoder, Totals
from eagleops.sim.memory import GRAPHS_MIB, Plan
from eagleops.sim.sglang import __version__
from eagleops.sim.sglang.arguments import Arguments

Document = dict[str, Any]
CONTEXT_LENGTH = 262144

# Keys that a real 0.5.17 tells of a plain language model.
_EMBEDDING: Document = {
    "family": "none",
    "task": "none",
    "execution": "none",
    "attention": "none",
    "pooling": "model_defined",
    "normalize": False,
    "enabled": False,
    "matryoshka_dimensions": [],
    "cache": {
        "kv_cache_disabled": False,
        "radix_cache_disabled": False,
        "chunked_prefill_disabled": False,
    },
}


class Info:
    """One server's description.

    Args:
        arguments: Its resolved arguments.
        startup_s: How long its start took.
    """

    def __init__(
        self, arguments: Arguments, plan: Plan, decoder: Decoder, startup_s: float
    ) -> None:
        self._arguments = arguments
        self._plan = plan
        self._decoder = decoder
        self._startup_s = startup_s
        self._created = int(time.time())
        self._flushed = Totals()

    def flush(self) -> None:
        """Begins the mean accept length anew, as /flush_cache does."""
        self._flushed = self._decoder.totals

    @property
    def context_length(self) -> int:
        """Tokens that a request may have."""
        return int(self._arguments["context_length"] or CONTEXT_LENGTH)

    @property
    def accept_length(self) -> float | None:
        """Mean tokens of a cycle since the last flush; None before the first."""
        since = self._decoder.totals.since(self._flushed)
        return 1 + since.right / since.cycles if since.cycles else None

    def server(self) -> Document:
        """/server_info."""
        startup = {
            "load_weight": 0.15 * self._startup_s,
            "kv_cache_allocation": 0.01 * self._startup_s,
            "scheduler_e2e": 0.8 * self._startup_s,
            "cuda_graph": {"prefill": 0.0, "decode": 0.1 * self._startup_s, "target_verify": 0.0},
            "tokenizer_e2e": self._startup_s,
        }
        return {
            **self._arguments,
            "simulated": True,
            "status": "ready",
            "max_total_num_tokens": self._plan.tokens,
            "max_req_input_len": self.context_length - 6,
            "startup_time": startup,
            "internal_states": [self._internal_state(startup)],
            "version": __version__,
            "kv_events": None,
        }

    def _internal_state(self, startup: Document) -> Document:
        steps = self._arguments["speculative_num_draft_tokens"]
        state: Document = {
            **self._arguments,
            "startup_time": startup,
            "max_speculative_num_draft_tokens": steps,
            "last_gen_throughput": self._decoder.pace_tok_s,
            "memory_usage": {
                "weight": round(self._plan.weights_mib / 1024, 3),
                "kvcache": round(self._plan.kv_mib / 1024, 3),
                "startup_available": 0.0,
                "token_capacity": self._plan.tokens,
                "token_capacity_swa": None,
                "graph": {"decode": round(GRAPHS_MIB / 1024, 3)},
            },
            "effective_max_running_requests_per_dp": self._arguments["max_running_requests"]
            or 2048,
        }
        if self.accept_length is not None:
            state["avg_spec_accept_length"] = self.accept_length
        return state

    def model(self) -> Document:
        """/model_info."""
        return {
            "model_path": self._arguments["model_path"],
            "tokenizer_path": self._arguments["tokenizer_path"],
            "is_generation": True,
            "preferred_sampling_params": None,
            "weight_version": "default",
            "has_image_understanding": False,
            "has_audio_understanding": False,
            "model_type": "simulated",
            "architectures": ["Simulated"],
            "embedding": _EMBEDDING,
        }

    def models(self) -> Document:
        """/v1/models."""
        name = self._arguments["served_model_name"]
        model = {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "sglang",
            "root": name,
            "parent": None,
            "max_model_len": self.context_length,
        }
        return {"object": "list", "data": [model]}
