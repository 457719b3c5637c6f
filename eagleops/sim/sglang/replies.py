"""Replies in SGLang's shapes, whole or as a stream, as a real 0.5.17 gave them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

from eagleops.sim.decoder import Decoder, Reply, words
from eagleops.sim.web import event

Document = dict[str, Any]
_FIRST_TOKEN_ID = 1000


def _compact(document: Document) -> bytes:
    return event(json.dumps(document, ensure_ascii=False, separators=(",", ":")))


class Native:
    """A reply of /generate.

    Args:
        drafts: Tokens drafted in each speculative cycle; 0 in plain decoding.
    """

    def __init__(self, reply: Reply, drafts: int) -> None:
        self._reply = reply
        self._drafts = drafts
        self._id = secrets.token_hex(16)

    def stream(self, decoder: Decoder) -> Iterator[bytes]:
        """Events; each repeats the whole text so far."""
        for _ in decoder.decode(self._reply):
            yield _compact(self._document(streamed=True))
        yield event("[DONE]")

    def whole(self, decoder: Decoder) -> Document:
        """The reply once all of it has come."""
        for _ in decoder.decode(self._reply):
            pass
        return self._document(streamed=False)

    def _document(self, *, streamed: bool) -> Document:
        ids = range(_FIRST_TOKEN_ID, _FIRST_TOKEN_ID + self._reply.tokens)
        return {
            "text": self._reply.text,
            "output_ids": list(ids),
            "meta_info": self._meta(streamed=streamed),
        }

    def _meta(self, *, streamed: bool) -> Document:
        reply = self._reply
        ended = reply.tokens >= reply.length
        meta = {
            "id": self._id,
            "finish_reason": {"type": "length", "length": reply.length} if ended else None,
            "prompt_tokens": reply.prompt_tokens,
            "weight_version": "default",
            "num_retractions": 0,
            "forward_entry_time": reply.started_s + 0.0012,
            "prefill_finished_time": reply.started_s + reply.first_s,
            "queue_time": 0.0003,
            "reasoning_tokens": 0,
            "completion_tokens": reply.tokens,
            "cached_tokens": 0,
            "cached_tokens_details": None,
            "dp_rank": None,
        }
        if ended:
            meta["e2e_latency"] = reply.last_s
            if reply.cycles:
                meta.update(self._speculation())
            finished = reply.started_s + reply.last_s
            meta["request_received_ts"] = reply.started_s
            meta["api_server_dispatch_finish_ts"] = reply.started_s + 0.0005
            if streamed:
                meta["response_sent_to_client_ts"] = reply.started_s + reply.first_s
            meta["request_finished_ts"] = finished
            meta["decode_throughput"] = reply.tokens_per_s
            if not streamed:
                meta["response_sent_to_client_ts"] = time.time()
        return meta

    def _speculation(self) -> Document:
        reply = self._reply
        correct = reply.right
        proposed = reply.cycles * self._drafts
        return {
            "spec_accept_rate": correct / proposed,
            # The engine's own figure counts the prefill's token in: a little above the truth.
            "spec_accept_length": reply.tokens / reply.cycles,
            "spec_num_correct_drafts": correct,
            "spec_num_proposed_drafts": proposed,
            "spec_verify_ct": reply.cycles,
            "spec_accepted_drafts": correct,
            "spec_proposed_drafts": proposed,
            "spec_correct_drafts_histogram": reply.yields,
            "spec_accept_histogram": reply.yields,
        }


class OpenAi:
    """A reply of /v1/completions or /v1/chat/completions.

    Args:
        model: As the request named it.
        chat: Which of the two.
        usage: Whether a stream ends with the token counts.
    """

    def __init__(self, reply: Reply, model: str, *, chat: bool, usage: bool = False) -> None:
        self._reply = reply
        self._model = model
        self._chat = chat
        self._usage = usage
        self._id = secrets.token_hex(16)
        self._created = int(reply.started_s)

    def stream(self, decoder: Decoder) -> Iterator[bytes]:
        """Events; each holds the new text alone."""
        reply = self._reply
        if self._chat:
            yield self._chunk({"delta": {"role": "assistant", "content": ""}}, None)
        for tokens in decoder.decode(reply):
            text = words(reply.tokens - tokens, reply.tokens)
            end = "length" if reply.tokens >= reply.length else None
            body = {"delta": {"content": text}} if self._chat else {"text": text}
            yield self._chunk(body, end)
        if self._usage:
            yield _compact(self._document([], self._counts(), chunk=True))
        yield event("[DONE]")

    def whole(self, decoder: Decoder) -> Document:
        """The reply once all of it has come."""
        for _ in decoder.decode(self._reply):
            pass
        message = {"role": "assistant", "content": self._reply.text, "tool_calls": None}
        body = {"message": message} if self._chat else {"text": self._reply.text}
        return self._document([self._choice(body, "length")], self._counts(), chunk=False)

    def _chunk(self, body: Document, end: str | None) -> bytes:
        return _compact(self._document([self._choice(body, end)], None, chunk=True))

    def _choice(self, body: Document, end: str | None) -> Document:
        return {
            "index": 0,
            **body,
            "logprobs": None,
            "finish_reason": end,
            "matched_stop": None,
        }

    def _document(
        self, choices: list[Document], usage: Document | None, *, chunk: bool
    ) -> Document:
        kind = "text_completion"
        if self._chat:
            kind = "chat.completion.chunk" if chunk else "chat.completion"
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._model,
            "choices": choices,
            "usage": usage,
        }

    def _counts(self) -> Document:
        reply = self._reply
        return {
            "prompt_tokens": reply.prompt_tokens,
            "total_tokens": reply.prompt_tokens + reply.tokens,
            "completion_tokens": reply.tokens,
            "reasoning_tokens": 0,
        }
