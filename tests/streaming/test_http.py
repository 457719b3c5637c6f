"""A streaming client against servers that misbehave, each a real one on loopback."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from eagleops.errors import RequestFailed, UsageError
from eagleops.streaming.dialects import OpenAiCompletions, SglangGenerate
from eagleops.streaming.http import HttpClient

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def event(tokens: int, *, last: bool = False) -> bytes:
    """An event of /generate."""
    meta = {"completion_tokens": tokens, "finish_reason": {"type": "length"} if last else None}
    return b"data: " + json.dumps({"text": "é" * tokens, "meta_info": meta}).encode() + b"\n\n"


def chunked(*pieces: bytes) -> bytes:
    """HTTP chunks, without the last one."""
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


class Server:
    """Answers each connection's requests with bytes that a test wrote."""

    def __init__(self, *answers: bytes, hold: bool = False) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._answers = list(answers)
        self._hold = hold
        self._release = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._release.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                with connection:
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        while self._answers:
            request = self._read(connection)
            if not request:
                return
            self.requests.append(request)
            connection.sendall(self._answers.pop(0))
        if self._hold:
            self._release.wait(30)

    def _read(self, connection: socket.socket) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more:
                return b""
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                while len(body) < int(line.split(b":")[1]):
                    body += connection.recv(65536)
        return head + b"\r\n\r\n" + body


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[HttpClient, Server]]]:
    """Starts a server with these answers, and a client for it."""
    started: list[tuple[HttpClient, Server]] = []

    def serve(*answers: bytes, **more: object) -> tuple[HttpClient, Server]:
        server = Server(*answers, **more)
        started.append((HttpClient(server.url, "sim: baseline"), server))
        return started[-1]

    yield serve
    for client, server in started:
        client.close()
        server.close()


def whole(client: HttpClient, tokens: int = 9, stall_s: float = 30.0):
    """One reply of /generate."""
    return client.whole(SglangGenerate(), "a", tokens, stall_s=stall_s)


def test_a_reply_in_broken_chunks(serve) -> None:
    """HTTP chunks that cut events and characters in two are read whole."""
    data = event(1) + event(2) + event(3, last=True) + b"data: [DONE]\n\n"
    client, _ = serve(CHUNKED + chunked(*(data[n : n + 7] for n in range(0, len(data), 7)), b""))

    assert whole(client).completion_tokens == 3


def test_a_reply_without_chunks_ends_with_its_connection(serve) -> None:
    """A server that tells no length streams all the same."""
    client, _ = serve(HEAD + b"\r\n" + event(1) + event(5, last=True))

    assert whole(client).completion_tokens == 5


def test_one_connection_serves_all_requests(serve) -> None:
    """A bench pays for one connection, and its streams reuse it."""
    stream = CHUNKED + chunked(event(1), event(2, last=True), b"data: [DONE]\n\n", b"")
    small = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    client, server = serve(small, stream, small, stream)

    client.ask("/model_info")
    whole(client)
    client.ask("/flush_cache", method="POST")
    whole(client)

    assert (len(server.requests), server.connections) == (4, 1)


def test_no_proxy_of_the_environment_is_asked(serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """http_proxy names a port where nobody is; the server is reached directly."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client, _ = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    assert client.ask("/model_info").json() == {}


def test_a_key_is_sent_and_never_shown(serve) -> None:
    """The bearer token reaches the server; the refusal's words do not hold it."""
    answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"
    _, server = serve(answer)
    client = HttpClient(server.url, "sim: baseline", api_key="sk-hidden")

    with pytest.raises(RequestFailed) as refused:
        whole(client)
    client.close()

    assert b"Bearer sk-hidden" in server.requests[0]
    assert "sk-hidden" not in str(refused.value)
    assert "EAGLEOPS_API_KEY" in str(refused.value)


@pytest.mark.parametrize(
    "key", ["hush\r", "hush\n", " hush", "hush ", "hüsh", "hush\x00", "\nhush"]
)
def test_a_key_that_no_header_can_hold_is_refused_without_it(key: str) -> None:
    """A file with Windows' line ends is enough for one; nothing is sent."""
    with pytest.raises(UsageError, match="the server's API key cannot be sent") as refused:
        HttpClient("http://127.0.0.1:1", "sim: baseline", api_key=key)

    assert key.strip() not in f"{refused.value} {refused.value.to_dict()}"


def test_an_http_error_is_told_with_its_words(serve) -> None:
    """HTTP 500 is where, what, and the way out."""
    body = b'{"error": "engine died"}'
    client, _ = serve(b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    with pytest.raises(RequestFailed) as refused:
        whole(client)

    assert refused.value.status == 500
    assert str(refused.value) == (
        'sim: baseline: POST /generate: HTTP 500: {"error": "engine died"}\n'
        "The server's log says why: eagleops logs."
    )


def test_a_stream_that_breaks_off(serve) -> None:
    """A connection that ends in the middle of a chunked body is told with what had come."""
    client, _ = serve(CHUNKED + chunked(event(1), event(4)) + b"ff\r\ndata: {")

    with pytest.raises(RequestFailed) as broken:
        whole(client)

    assert "after 4 of 9 tokens" in str(broken.value)
    assert str(broken.value).startswith("sim: baseline: /generate: ")


def test_a_stream_that_ends_without_an_end(serve) -> None:
    """A body that ends well, but with no [DONE] and no reason to finish, was cut."""
    client, _ = serve(CHUNKED + chunked(event(1), event(4), b""))

    with pytest.raises(RequestFailed, match="the stream ended without"):
        whole(client)


def test_a_stream_that_falls_silent(serve) -> None:
    """Silence ends after the limit that was set, and says after how many tokens it came."""
    client, _ = serve(CHUNKED + chunked(event(1)), hold=True)

    with pytest.raises(RequestFailed, match=r"nothing came for 2 s after 1 of 9 tokens"):
        whole(client, stall_s=2.0)


def test_an_error_in_the_stream(serve) -> None:
    """An event that tells of an error is the server's own words."""
    told = b'data: {"error": {"message": "out of memory"}}\n\n'
    client, _ = serve(CHUNKED + chunked(event(1), told, b""))

    with pytest.raises(RequestFailed, match="the server says: out of memory after 1 of 9 tokens"):
        whole(client)


def test_nobody_listens(serve) -> None:
    """A refused connection is told in words."""
    client, server = serve()
    server.close()

    with pytest.raises(RequestFailed, match="no connection: Connection refused"):
        client.ask("/model_info")


def test_a_stream_that_ends_before_its_first_token(serve) -> None:
    """A reply of nothing is no figure."""
    client, _ = serve(CHUNKED + chunked(b": hello\n\n", b"data: [DONE]\n\n", b""))

    with pytest.raises(RequestFailed, match="ended without a token"):
        client.whole(OpenAiCompletions("m"), "a", 9)
