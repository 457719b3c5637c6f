"""vLLM's HTTP API: the OpenAI one, and a few endpoints of its own."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from eagleops.sim.decoder import Decoder, Gone, Reply, count_tokens
from eagleops.sim.vllm import __version__, metrics
from eagleops.sim.vllm.arguments import Arguments
from eagleops.sim.vllm.replies import OpenAi
from eagleops.sim.web import Request, Response

Document = dict[str, Any]
_BAD_REQUEST, _NOT_FOUND, _DEAD = 400, 404, 500


class Api:
    """Answers the requests of one server.

    Attributes:
        unhealthy: /health says no.
        dead: The engine core has died.
        on_completion: Called before each completion.
    """

    def __init__(self, arguments: Arguments, decoder: Decoder) -> None:
        self.unhealthy = threading.Event()
        self.dead = threading.Event()
        self.on_completion: Callable[[], None] = lambda: None
        self._arguments = arguments
        self._decoder = decoder
        self._created = int(time.time())
        self._routes: dict[str, Callable[[Request], Response]] = {
            "/health": self._health,
            "/ping": self._health,
            "/version": lambda _: Response.of({"version": __version__}),
            "/v1/models": lambda _: Response.of(self._models()),
            "/metrics": self._metrics,
            "/v1/completions": lambda request: self._complete(request, chat=False),
            "/v1/chat/completions": lambda request: self._complete(request, chat=True),
        }

    def answer(self, request: Request) -> Response:
        """Answers one request."""
        route = self._routes.get(request.path)
        if route is None:
            return Response.of({"detail": "Not Found"}, _NOT_FOUND)
        try:
            return route(request)
        except ValueError as error:
            return _error(str(error), "BadRequestError", None, _BAD_REQUEST)
        except Gone:
            issue = "EngineCore encountered an issue. See stack trace (above) for the root cause."
            return _error(issue, "InternalServerError", None, _DEAD)

    def _health(self, _: Request) -> Response:
        return Response(503 if self.unhealthy.is_set() or self.dead.is_set() else 200)

    def _metrics(self, _: Request) -> Response:
        page = metrics.render(
            self._arguments.served_name, self._decoder, self._arguments.drafts
        ).encode()
        return Response(200, page, "text/plain; version=0.0.4; charset=utf-8")

    def _models(self) -> Document:
        permission = {
            "id": f"modelperm-{secrets.token_hex(8)}",
            "object": "model_permission",
            "created": self._created,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        model = {
            "id": self._arguments.served_name,
            "object": "model",
            "created": self._created,
            "owned_by": "vllm",
            "root": self._arguments.model,
            "parent": None,
            "max_model_len": self._arguments.max_model_len,
            "permission": [permission],
        }
        return {"object": "list", "data": [model]}

    def _complete(self, request: Request, *, chat: bool) -> Response:
        asked = request.json()
        served = self._arguments.served_name
        model = asked.get("model") or served
        if model != served:
            return _error(
                f"The model `{model}` does not exist.", "NotFoundError", "model", _NOT_FOUND
            )
        self.on_completion()
        if self.dead.is_set():
            raise Gone
        messages = asked.get("messages", [])
        prompt = " ".join(str(one.get("content", "")) for one in messages) if chat else None
        tokens = count_tokens(asked.get("prompt", "") if prompt is None else prompt)
        length = asked.get("max_completion_tokens") or asked.get("max_tokens") or 16
        if type(length) is not int or not 1 <= length <= self._arguments.max_model_len - tokens:
            raise ValueError(f"max_tokens must be at least 1 and fit the context, got {length}.")
        usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        reply = Reply(tokens, length)
        openai = OpenAi(reply, model, self._arguments.ranks, chat=chat, usage=usage)
        if asked.get("stream"):
            return Response(events=openai.stream(self._decoder))
        return Response.of(openai.whole(self._decoder))


def _error(message: str, kind: str, param: str | None, status: int) -> Response:
    error = {"message": message, "type": kind, "param": param, "code": status}
    return Response.of({"error": error}, status)
