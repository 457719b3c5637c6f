"""HTTP as the engines serve it: HTTP/1.1 that keeps connections, JSON, and streams of events."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

BACKLOG = 2048


class Request(NamedTuple):
    """What a client asked."""

    method: str
    path: str
    query: str
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body's JSON object.

        Raises:
            ValueError: if it is none.
        """
        document = json.loads(self.body or b"{}")
        if isinstance(document, dict):
            return document
        raise ValueError("the body is no JSON object")


class Response(NamedTuple):
    """An answer.

    Attributes:
        events: Server-sent events instead of a body: each is sent when it comes.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    events: Iterator[bytes] | None = None

    @classmethod
    def of(cls, document: object, status: int = 200) -> Response:
        """A JSON document."""
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        return cls(status, text.encode())


Answer = Callable[[Request], Response]
AccessLog = Callable[[str], None]


def event(data: str) -> bytes:
    """One server-sent event."""
    return f"data: {data}\n\n".encode()


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Serves one engine's API, each connection on a thread of its own.

    Args:
        listener: A bound socket; it listens from now on.
        answer: What answers a request.
        access_log: Gets a line for each request, in uvicorn's words.

    Attributes:
        active: Requests that are being answered, up to the last byte of their answer.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = BACKLOG

    def __init__(self, listener: socket.socket, answer: Answer, access_log: AccessLog) -> None:
        super().__init__(listener.getsockname()[:2], Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.answer = answer
        self.access_log = access_log
        self.active = 0
        self._lock = threading.Lock()
        self.server_activate()

    def count(self, change: int) -> None:
        """Counts a request in or out."""
        with self._lock:
            self.active += change

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nothing to tell; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    sys_version = ""
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        """Answers a GET."""
        self._counted()

    def do_POST(self) -> None:
        """Answers a POST."""
        self._counted()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Writes nothing: the access log is written where the answer is known."""

    def _counted(self) -> None:
        self.server.count(+1)
        try:
            self._answer()
        finally:
            self.server.count(-1)

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        response = self.server.answer(Request(self.command, path, query, body))
        host, port = self.client_address[:2]
        phrase = HTTPStatus(response.status).phrase
        self.server.access_log(
            f'{host}:{port} - "{self.command} {self.path} HTTP/1.1" {response.status} {phrase}'
        )
        if response.events is None:
            self._send_whole(response)
        else:
            self._send_events(response.status, response.events)

    def _send_whole(self, response: Response) -> None:
        self.send_response(response.status)
        self.send_header("Content-Length", str(len(response.body)))
        if response.body:
            self.send_header("Content-Type", response.content_type)
        self._end_headers_with(response.body)

    def _send_events(self, status: int, events: Iterator[bytes]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self._end_headers_with(b"")
        with contextlib.closing(_Closable(events)) as chunks:
            for chunk in chunks:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def _end_headers_with(self, body: bytes) -> None:
        # Head and body in one piece: two writes would be two packets, and a delayed ACK.
        head = b"".join([*self._headers_buffer, b"\r\n"])
        self._headers_buffer: list[bytes] = []
        self.wfile.write(head + body)


class _Closable:
    """An iterator that can be closed, whether or not it is a generator."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._events = events

    def __iter__(self) -> Iterator[bytes]:
        return self._events

    def close(self) -> None:
        close = getattr(self._events, "close", None)
        if close is not None:
            close()


def bound(host: str, port: int, *, share: bool = False) -> socket.socket:
    """A socket that is bound and does not listen yet.

    Args:
        host: An address or a name.
        port: 0 for any.
        share: Let other servers of this user bind the same port, as vLLM does.

    Raises:
        OSError: if the port is taken.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if share:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
