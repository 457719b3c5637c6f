"""How each engine is asked in a bench, cleared before a run, and what it counts."""

from __future__ import annotations

import time
from typing import Protocol

from eagleops.errors import CheckFailed
from eagleops.measuring.speculation import Cycles, VllmCounters, of_reply
from eagleops.streaming.dialects import Dialect, OpenAiCompletions, SglangGenerate
from eagleops.streaming.http import HttpClient
from eagleops.streaming.prometheus import totals
from eagleops.streaming.reply import Reply

OK, BAD_REQUEST = 200, 400
# A reply's end is heard a moment before the engine has counted it.
SETTLE_S = 2.0
POLL_S = 0.05


class Counting(Protocol):
    """One engine in one bench."""

    dialect: Dialect
    idle_path: str
    notes: list[str]
    flushed: bool

    def begin(self, client: HttpClient) -> VllmCounters | None:
        """Clears what can be cleared, and reads the counters."""

    def end(self, client: HttpClient, reply: Reply, before: VllmCounters | None) -> Cycles | None:
        """The reply's speculative cycles; None where the engine tells none."""


def counting_of(engine: str, client: HttpClient) -> Counting:
    """The way of ``engine``.

    Raises:
        CheckFailed: if the server does not tell which model it serves.
    """
    if engine == "sglang":
        return _Sglang()
    document = client.ask("/v1/models").json()
    models = document.get("data") if isinstance(document, dict) else None
    if not models:
        raise CheckFailed(
            problem="/v1/models names no model: this is no server that a bench can ask",
            where=client.where,
        )
    return _OpenAi(str(models[0]["id"]), engine)


class _Sglang:
    """SGLang: its own endpoint, whose replies count their verify cycles."""

    idle_path = "/model_info"

    def __init__(self) -> None:
        self.dialect: Dialect = SglangGenerate()
        self.notes: list[str] = []
        self.flushed = True

    def begin(self, client: HttpClient) -> VllmCounters | None:
        """Flushes the cache, which sets the counters back, too; only an idle server does."""
        deadline_s = time.monotonic() + SETTLE_S
        answer = client.ask("/flush_cache", method="POST")
        while answer.status == BAD_REQUEST and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
            answer = client.ask("/flush_cache", method="POST")
        if answer.status == OK:
            return None
        self.flushed = False
        busy = "the server is busy with other requests" if answer.status == BAD_REQUEST else ""
        why = busy or f"POST /flush_cache: HTTP {answer.status}"
        self.notes.append(f"The cache could not be flushed before each run: {why}")
        return None

    def end(self, client: HttpClient, reply: Reply, before: VllmCounters | None) -> Cycles | None:
        """From the reply's ``meta_info``."""
        del client, before
        return of_reply(reply)


class _OpenAi:
    """vLLM, and whoever speaks OpenAI's API; vLLM's counters are read where they are told."""

    idle_path = "/v1/models"

    def __init__(self, model: str, engine: str) -> None:
        vllm = engine == "vllm"
        self.dialect: Dialect = OpenAiCompletions(model, ignore_eos=vllm, each_event=vllm)
        self.notes: list[str] = []
        self.flushed = False

    def begin(self, client: HttpClient) -> VllmCounters | None:
        """The counters as they stand; differences to them are the run's own."""
        counters = self._counters(client)
        if counters is not None and counters.running > 0:
            self.notes.append("The server was busy with other requests while it was measured")
        return counters

    def end(self, client: HttpClient, reply: Reply, before: VllmCounters | None) -> Cycles | None:
        """From the counters, once they have counted all of the reply."""
        if before is None or before.drafts is None:
            return None
        deadline_s = time.monotonic() + SETTLE_S
        after = self._counters(client)
        expected = before.generated + (reply.completion_tokens or 0)
        while after and after.generated < expected and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
            after = self._counters(client)
        if after is None:
            return None
        if after.generated > expected:
            self.notes.append(
                "Others asked the server meanwhile: the accept length counts their replies, too"
            )
        return after.since(before)

    def _counters(self, client: HttpClient) -> VllmCounters | None:
        answer = client.ask("/metrics")
        return VllmCounters.of(totals(answer.text)) if answer.status == OK else None
