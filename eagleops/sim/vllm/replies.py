"""Replies in vLLM's shapes, whole or as a stream, as a real 0.32.0 gave them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

from eagleops.sim.decoder import Decoder, Reply, words
from eagleops.sim.vllm import __version__
from eagleops.sim.web import event

Document = dict[str, Any]


class OpenAi:
    """A reply of /v1/completions or /v1/chat/completions.

    Args:
        model: As it is served.
        ranks: Of the server, for its fingerprint.
        chat: Which of the two.
        usage: Whether a stream ends with the token counts.
    """

    def __init__(
        self, reply: Reply, model: str, ranks: int, *, chat: bool, usage: bool = False
    ) -> None:
        self._reply = reply
        self._chat = chat
        self._usage = usage
        self._fingerprint = f"vllm-{__version__}-tp{ranks}-00000000"
        kind = "chat.completion" if chat else "text_completion"
        self._head: Document = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{secrets.token_hex(8)}",
            "object": kind,
            "created": int(reply.started_s),
            "model": model,
        }

    def stream(self, decoder: Decoder) -> Iterator[bytes]:
        """Events; each holds the new text alone."""
        reply = self._reply
        if self._chat:
            yield self._chunk([self._delta({"role": "assistant", "content": ""}, None)])
        for tokens in decoder.decode(reply):
            text = words(reply.tokens - tokens, reply.tokens)
            end = "length" if reply.tokens >= reply.length else None
            if self._chat:
                yield self._chunk([self._delta({"content": text}, end)])
            else:
                ids = {"prompt_token_ids": None, "token_ids": None}
                yield self._chunk([{**self._choice(text, end), **ids}])
        if self._usage:
            yield self._chunk([], usage=self._counts(), system_fingerprint=self._fingerprint)
        yield event("[DONE]")

    def whole(self, decoder: Decoder) -> Document:
        """The reply once all of it has come."""
        for _ in decoder.decode(self._reply):
            pass
        text = self._reply.text
        message: Document = {"role": "assistant", "content": text}
        message.update(refusal=None, tool_calls=[])
        choice = (
            {**self._delta(None, "length"), "message": message}
            if self._chat
            else {**self._choice(text, "length"), "token_ids": None, "prompt_logprobs": None}
        )
        choice.pop("delta", None)
        details = {"prompt_tokens_details": None, "completion_tokens_details": None}
        return {
            **self._head,
            "choices": [choice],
            "service_tier": None,
            "system_fingerprint": self._fingerprint,
            "usage": {**self._counts(), **details},
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "metrics": None,
        }

    def _chunk(self, choices: list[Document], **more: Any) -> bytes:
        kind = "chat.completion.chunk" if self._chat else "text_completion"
        document = {**self._head, "object": kind, "choices": choices, **more}
        return event(json.dumps(document, ensure_ascii=False, separators=(",", ":")))

    def _choice(self, text: str, end: str | None) -> Document:
        return {
            "index": 0,
            "text": text,
            "logprobs": None,
            "finish_reason": end,
            "stop_reason": None,
        }

    def _delta(self, delta: Document | None, end: str | None) -> Document:
        return {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": end,
            "stop_reason": None,
            "token_ids": None,
        }

    def _counts(self) -> Document:
        reply = self._reply
        return {
            "prompt_tokens": reply.prompt_tokens,
            "total_tokens": reply.prompt_tokens + reply.tokens,
            "completion_tokens": reply.tokens,
        }
