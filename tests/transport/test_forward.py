"""A target's port here: HTTP to a server that listens on the target's loopback alone."""

import http.client
import http.server
import socket
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from eagleops.errors import ConnectFailed
from eagleops.transport.forward import forward
from parts.poll import until

BODY = b"0123456789" * 100_000


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with a megabyte, or with what was posted."""

    def do_GET(self):
        """The megabyte."""
        self.answer(BODY)

    def do_POST(self):
        """The echo."""
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body):
        """Sends a whole answer."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        """Nothing."""


@pytest.fixture
def server_port():
    """An HTTP server on this machine's loopback, which the targets share."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def fetch(port, data=None):
    """One request, past every proxy of the environment."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/", data=data, timeout=30) as answer:
        return answer.read()


def test_http_goes_through(way, server_port):
    """Requests and answers of a megabyte pass whole, over each way."""
    with forward(way, server_port) as there:
        assert fetch(there.port) == BODY
        assert fetch(there.port, data=BODY) == BODY


def test_many_connections_go_at_once(sshd, server_port):
    """24 requests at once are 24 connections, and each gets its own answer."""
    with (
        forward(sshd.transport(), server_port) as there,
        ThreadPoolExecutor(24) as threads,
    ):
        bodies = [b"%d" % number for number in range(24)]
        assert list(threads.map(lambda body: fetch(there.port, data=body), bodies)) == bodies


def test_a_port_where_nothing_listens_closes_the_connection(way):
    """A client of a forwarded port learns that nothing is there by the end of its connection."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nothing = (OSError, http.client.HTTPException)
        with forward(way, unused.getsockname()[1]) as there, pytest.raises(nothing):
            fetch(there.port)


def test_ssh_tells_where_nothing_listens(sshd):
    """Over SSH itself the refusal is an error of its own."""
    with pytest.raises(ConnectFailed) as refused:
        sshd.transport().connect("127.0.0.1", 1, timeout_s=10.0)
    assert str(refused.value) == (
        f"{sshd.address}: no connection from there to 127.0.0.1:1: Connect failed\n"
        "Does something listen there, and does sshd forward (AllowTcpForwarding)?"
    )


def test_closing_ends_the_connections(sshd, server_port):
    """After close nothing is accepted, and an open connection ends."""
    there = forward(sshd.transport(), server_port)
    with socket.create_connection(("127.0.0.1", there.port), timeout=10) as client:
        client.sendall(b"GET / HT")
        until(lambda: there._open)
        there.close()
        assert client.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", there.port), timeout=10)
