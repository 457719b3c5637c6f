"""How engines are asked for a streamed reply, and how each event of theirs is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from eagleops.streaming.reply import Reply

Document = Mapping[str, Any]

# What is read from one full buffer comes microseconds apart; a decode step takes ten times this.
TOGETHER_S = 0.0002


class StreamError(ValueError):
    """An event that is no reply: the server's own words of what is wrong."""


class Reader(Protocol):
    """Reads one reply's events as they come."""

    @property
    def tokens(self) -> int:
        """The tokens so far, as far as is known."""

    @property
    def last_s(self) -> float:
        """When the last of them came, in seconds from the request; 0 before the first."""

    def take(self, data: str, at_s: float) -> None:
        """Takes in one event's data, heard ``at_s`` seconds after the request was sent.

        Raises:
            StreamError: if it tells of an error, or cannot be read.
        """

    def reply(self) -> Reply | None:
        """The reply once its stream has ended; None where no token came."""


class Dialect(Protocol):
    """One way of asking."""

    @property
    def path(self) -> str:
        """Where to POST."""

    def body(self, prompt: str, tokens: int) -> dict[str, Any]:
        """The request for ``tokens`` tokens after ``prompt``, greedy, past any end of text."""

    def reader(self) -> Reader:
        """A reader for one reply."""


class _Moments:
    """At how many moments events came, and when the first and the last of them did."""

    def __init__(self) -> None:
        self.events = 0
        self.count = 0
        self.first_s = 0.0
        self.last_s = 0.0

    def add(self, at_s: float) -> None:
        """Counts an event."""
        if not self.events:
            self.first_s = at_s
        if not self.events or at_s - self.last_s > TOGETHER_S:
            self.count += 1
        self.events += 1
        self.last_s = at_s


class SglangGenerate:
    """SGLang's own ``/generate``: ``meta_info`` counts tokens and verify cycles."""

    path = "/generate"

    def body(self, prompt: str, tokens: int) -> dict[str, Any]:
        """As :meth:`Dialect.body`."""
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        return {"text": prompt, "sampling_params": sampling, "stream": True}

    def reader(self) -> Reader:
        """As :meth:`Dialect.reader`."""
        return _SglangReader()


class _SglangReader:
    """Every event repeats the whole text so far: one is read when a figure of it is asked for."""

    def __init__(self) -> None:
        self._moments = _Moments()
        self._first_tokens = 0
        self._unread = ""
        self._meta: Document = {}

    @property
    def last_s(self) -> float:
        return self._moments.last_s

    @property
    def tokens(self) -> int:
        return int(self._newest_meta().get("completion_tokens") or 0)

    def take(self, data: str, at_s: float) -> None:
        if not data.startswith("{") or '"error"' in data[:64]:
            raise StreamError(_message(_document(data)))
        before = self._moments.count
        self._moments.add(at_s)
        if (before, self._moments.count) == (1, 2):
            self._first_tokens = self.tokens  # of the event before: the first moment is over
        self._unread = data

    def reply(self) -> Reply | None:
        moments = self._moments
        if not moments.events:
            return None
        meta = self._newest_meta()
        reason = meta.get("finish_reason")
        return Reply(
            first_s=moments.first_s,
            last_s=moments.last_s,
            first_tokens=self._first_tokens or self.tokens,
            completion_tokens=meta.get("completion_tokens"),
            prompt_tokens=meta.get("prompt_tokens"),
            cached_tokens=meta.get("cached_tokens"),
            verify_cycles=meta.get("spec_verify_ct"),
            events=moments.events,
            moments=moments.count,
            finish_reason=str(reason.get("type") if isinstance(reason, dict) else reason or ""),
            # 0.5.23 tells it under both names.
            correct_drafts=tuple(
                meta.get("spec_correct_drafts_histogram") or meta.get("spec_accept_histogram") or ()
            ),
        )

    def _newest_meta(self) -> Document:
        if self._unread:
            self._meta = _document(self._unread).get("meta_info") or {}
            self._unread = ""
        return self._meta


class OpenAiCompletions:
    """``/v1/completions`` of whoever serves it.

    Args:
        model: As the server names it.
        ignore_eos: Whether the server knows ``ignore_eos``, which is not OpenAI's own.
        each_event: Whether it knows ``continuous_usage_stats`` (vLLM): counts in every event.
    """

    path = "/v1/completions"

    def __init__(self, model: str, *, ignore_eos: bool = True, each_event: bool = False) -> None:
        self._model = model
        self._ignore_eos = ignore_eos
        self._each_event = each_event

    def body(self, prompt: str, tokens: int) -> dict[str, Any]:
        """As :meth:`Dialect.body`."""
        options: dict[str, Any] = {"include_usage": True}
        if self._each_event:
            options["continuous_usage_stats"] = True
        asked: dict[str, Any] = {
            "model": self._model,
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": options,
        }
        return {**asked, "ignore_eos": True} if self._ignore_eos else asked

    def reader(self) -> Reader:
        """As :meth:`Dialect.reader`."""
        return _OpenAiReader()


class _OpenAiReader:
    def __init__(self) -> None:
        self.tokens = 0
        self._moments = _Moments()
        self._first_tokens = 0
        self._counted = False
        self._usage: Document = {}
        self._reason = ""

    @property
    def last_s(self) -> float:
        return self._moments.last_s

    def take(self, data: str, at_s: float) -> None:
        document = _document(data)
        if "error" in document:
            raise StreamError(_message(document))
        usage = document.get("usage") or {}
        counted = usage.get("completion_tokens")
        self._usage = usage or self._usage
        for choice in document.get("choices") or ():
            self._came(counted, at_s)
            self._reason = choice.get("finish_reason") or self._reason

    def reply(self) -> Reply | None:
        moments = self._moments
        if not moments.events:
            return None
        details = self._usage.get("prompt_tokens_details") or {}
        return Reply(
            first_s=moments.first_s,
            last_s=moments.last_s,
            first_tokens=self._first_tokens,
            completion_tokens=self._usage.get("completion_tokens"),
            prompt_tokens=self._usage.get("prompt_tokens"),
            cached_tokens=details.get("cached_tokens"),
            events=moments.events,
            moments=moments.count,
            finish_reason=self._reason,
        )

    def _came(self, counted: int | None, at_s: float) -> None:
        """An event with a choice brings tokens, unless the counts say that it brings none."""
        if counted is not None and counted <= (self.tokens if self._counted else 0):
            return
        self._moments.add(at_s)
        self._counted = counted is not None
        self.tokens = self.tokens + 1 if counted is None else counted
        if self._moments.count == 1:
            self._first_tokens = self.tokens


def _document(data: str) -> Document:
    try:
        document = json.loads(data)
    except ValueError:
        raise StreamError(f"an event that is no JSON: {data[:200]}") from None
    if not isinstance(document, dict):
        raise StreamError(f"an event that is no JSON object: {data[:200]}")
    return document


def _message(document: Document) -> str:
    error = document.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or document)[:400]
