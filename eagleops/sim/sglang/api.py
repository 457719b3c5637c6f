"""SGLang's HTTP API."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from eagleops.sim.decoder import Decoder, Gone, Interval, Reply, count_tokens
from eagleops.sim.memory import Plan
from eagleops.sim.sglang import metrics
from eagleops.sim.sglang.arguments import Arguments
from eagleops.sim.sglang.info import Info
from eagleops.sim.sglang.log import Log
from eagleops.sim.sglang.replies import Native, OpenAi
from eagleops.sim.web import Request, Response

Document = dict[str, Any]
_DEFAULT_LENGTH = 128
_FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or "
    "waiting requests, the operation will not be performed.)\n"
)


class Api:
    """Answers the requests of one server.

    Attributes:
        up: The warm-up is done.
        draining: It is shutting down.
        unhealthy: /health says no though it is up.
        on_completion: Called before each completion of a server that is up.
    """

    def __init__(
        self, arguments: Arguments, plan: Plan, decoder: Decoder, info: Info, log: Log
    ) -> None:
        self.up = threading.Event()
        self.draining = threading.Event()
        self.unhealthy = threading.Event()
        self.on_completion: Callable[[], None] = lambda: None
        self._arguments = arguments
        self._plan = plan
        self._decoder = decoder
        self._info = info
        self._log = log
        decoder.report = self._report
        self._routes: dict[str, Callable[[Request], Response]] = {
            "/health": self._health,
            "/health_generate": self._health,
            "/model_info": lambda _: Response.of(info.model()),
            "/server_info": lambda _: Response.of(info.server()),
            "/v1/models": lambda _: Response.of(info.models()),
            "/generate": self._generate,
            "/v1/completions": lambda request: self._openai(request, chat=False),
            "/v1/chat/completions": lambda request: self._openai(request, chat=True),
            "/flush_cache": self._flush_cache,
        }
        if arguments["enable_metrics"]:
            self._routes["/metrics"] = self._metrics

    def answer(self, request: Request) -> Response:
        """Answers one request."""
        path = request.path
        if path in {"/get_model_info", "/get_server_info"}:
            path = path.replace("/get_", "/")
            self._log(
                f"Endpoint '{request.path}' is deprecated and will be removed in a future version. "
                f"Please use '{path}' instead."
            )
        route = self._routes.get(path)
        if route is None:
            return Response.of({"detail": "Not Found"}, 404)
        try:
            return route(request)
        except ValueError as error:
            return Response.of({"error": {"message": str(error)}}, 400)
        except Gone:
            return Response.of({"error": {"message": "The server is shutting down."}}, 503)

    def _health(self, _: Request) -> Response:
        sound = self.up.is_set() and not self.draining.is_set() and not self.unhealthy.is_set()
        return Response(200 if sound else 503)

    def _metrics(self, _: Request) -> Response:
        page = metrics.render(self._arguments, self._plan, self._decoder, self._info)
        return Response(200, page.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _flush_cache(self, _: Request) -> Response:
        if self._decoder.running:
            return Response(400, _FLUSHED.encode(), "text/plain; charset=utf-8")
        self._info.flush()
        self._log("Cache flushed successfully!")
        return Response(200, _FLUSHED.encode(), "text/plain; charset=utf-8")

    def _generate(self, request: Request) -> Response:
        asked = request.json()
        prompt = asked.get("text", asked.get("input_ids"))
        if prompt is None:
            raise ValueError("Either text, input_ids or input_embeds should be provided.")
        sampling = asked.get("sampling_params") or {}
        length = sampling.get("max_new_tokens", _DEFAULT_LENGTH)
        prompts = prompt if _is_batch(prompt) else [prompt]
        natives = [Native(self._reply(one, length), self._drafts) for one in prompts]
        if asked.get("stream"):
            return Response(events=natives[0].stream(self._decoder))
        documents = [native.whole(self._decoder) for native in natives]
        return Response.of(documents if _is_batch(prompt) else documents[0])

    def _openai(self, request: Request, *, chat: bool) -> Response:
        asked = request.json()
        prompt = " ".join(_contents(asked)) if chat else asked.get("prompt", "")
        length = asked.get("max_completion_tokens") or asked.get("max_tokens")
        reply = self._reply(prompt, length or (_DEFAULT_LENGTH if chat else 16))
        usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        openai = OpenAi(reply, str(asked.get("model", "")), chat=chat, usage=usage)
        if asked.get("stream"):
            return Response(events=openai.stream(self._decoder))
        return Response.of(openai.whole(self._decoder))

    def _report(self, interval: Interval) -> None:
        accept = ""
        if self._decoder.speculative:
            length = interval.tokens / interval.ticks
            accept = f"accept len: {length:.2f}, accept rate: {(length - 1) / self._drafts:.2f}, "
        self._log(
            f"Decode batch, #running-req: {self._decoder.running}, #token: {interval.held}, "
            f"token usage: {interval.held / self._plan.tokens:.2f}, {accept}cuda graph: True, "
            f"gen throughput (token/s): {interval.tokens / interval.seconds:.2f}, #queue-req: 0"
        )

    @property
    def _drafts(self) -> int:
        return int(self._arguments["speculative_num_draft_tokens"] or 1) - 1

    def _reply(self, prompt: object, length: object) -> Reply:
        if self.draining.is_set():
            raise Gone
        if self.up.is_set():
            self.on_completion()
        tokens = count_tokens(prompt)
        if type(length) is not int or not 1 <= length <= self._info.context_length - tokens:
            raise ValueError(f"max_new_tokens must be a positive number that fits, not {length!r}")
        self._log(
            f"Prefill batch, #new-seq: 1, #new-token: {tokens}, #cached-token: 0, "
            f"token usage: 0.00, #running-req: {self._decoder.running}, #queue-req: 0, "
            "#pending-token: 0, cuda graph: True, input throughput (token/s): 0.00"
        )
        return Reply(tokens, length)


def _is_batch(prompt: object) -> bool:
    return isinstance(prompt, list) and bool(prompt) and not isinstance(prompt[0], int)


def _contents(asked: Document) -> list[str]:
    return [str(message.get("content", "")) for message in asked.get("messages", [])]
