"""A receiver of webhooks: a real HTTP server on loopback that answers as a test tells it."""

from __future__ import annotations

import contextlib
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

# The part of a webhook's URL that is its password.
TOKEN = "xoxB7tokenXq93"
PATH = f"/services/T024BE7LD/{TOKEN}?sig={TOKEN}"


@attrs.frozen
class Reply:
    """An answer in full, or as much of it as a misbehaving server sends."""

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b"ok"
    # How it misbehaves: "" not at all, "hang", "close", "cut" (in the body), "drip".
    how: str = ""


@attrs.frozen
class Request:
    """What came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Receiver:
    """Answers the first request with the first reply, and so on; then with 200."""

    def __init__(self, *replies: Reply, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.release = threading.Event()
        self._replies = list(replies)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.handle_error = lambda *_: None  # a client that turns away is no error
        self._scheme = "https" if context else "http"
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def url(self, path: str = PATH, host: str = "127.0.0.1") -> str:
        return f"{self._scheme}://{host}:{self.port}{path}"

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.requests.append(Request(self.path, dict(self.headers), body))
                reply = receiver._replies.pop(0) if receiver._replies else Reply()
                receiver._answer(self, reply)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def _answer(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        handler.close_connection = True
        if reply.how == "hang":
            self.release.wait(30)
        if reply.how == "drip":
            self._drip(handler)
        if reply.how in {"hang", "close", "drip"}:
            return
        handler.send_response_only(reply.status)
        if "Date" not in reply.headers:
            handler.send_header("Date", handler.date_time_string())
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        length = len(reply.body) + (100 if reply.how == "cut" else 0)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        handler.wfile.write(reply.body)

    def _drip(self, handler: BaseHTTPRequestHandler) -> None:
        """A header that never ends, a byte at a time: each read gets something in time."""
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        with contextlib.suppress(OSError):
            while not self.release.wait(0.05):
                handler.wfile.write(b"x")
                handler.wfile.flush()
