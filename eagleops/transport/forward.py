"""A port of a target as a port of this machine's loopback, for what speaks HTTP to a server there.

Over SSH a connection is a ``direct-tcpip`` channel. Into a container it is a small relay
program over the same transport as everything else: the port may be one that only the
container's own loopback has.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from eagleops.errors import Unreachable
from eagleops.transport.base import Channel, Transport
from eagleops.transport.ssh import SshTransport

_CHUNK_BYTES = 64 * 1024
_OPEN_LIMIT_S = 15.0

# argv: the port. Its stdin and stdout are the connection.
_RELAY = """
import os, socket, sys, threading
far = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
far.settimeout(None)
far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def up():
    while True:
        data = os.read(0, 65536)
        if not data:
            return far.shutdown(socket.SHUT_WR)
        far.sendall(data)
threading.Thread(target=up, daemon=True).start()
while True:
    data = far.recv(65536)
    if not data:
        os._exit(0)
    while data:
        data = data[os.write(1, data):]
"""


class Forward:
    """A listener on 127.0.0.1 whose connections end at a target's port.

    Args:
        connect: Makes the way for one connection.

    Attributes:
        port: Where to connect here.
    """

    def __init__(self, connect: Callable[[], Channel]) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: set[socket.socket] = set()
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, name="forward", daemon=True).start()

    def __enter__(self) -> Forward:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Takes no more connections, and ends those that are open."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept; close alone does not
        self._listener.close()
        for near in list(self._open):
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            try:
                near, _peer = self._listener.accept()
            except OSError:
                return
            # Small pieces go on at once: a stream's tokens would wait for one another.
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._join, args=(near,), name="forward", daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        # Where the way cannot be made, the client sees its connection closed.
        with (
            near,
            contextlib.suppress(OSError, Unreachable),
            contextlib.closing(self._connect()) as far,
        ):
            self._open.add(near)
            up = threading.Thread(target=_send_up, args=(near, far), daemon=True)
            up.start()
            while data := far.recv():
                near.sendall(data)
            near.shutdown(socket.SHUT_WR)
            up.join()
        self._open.discard(near)


def forward(transport: Transport, port: int, *, python: str = "python3") -> Forward:
    """Opens a way to ``127.0.0.1:port`` of a transport's target; use it as a context.

    Args:
        transport: The way to the target.
        port: On the target's loopback.
        python: The target's, for the relay where the way is not SSH alone.
    """
    if isinstance(transport, SshTransport):
        return Forward(lambda: transport.connect("127.0.0.1", port, timeout_s=_OPEN_LIMIT_S))
    argv = [python, "-I", "-c", _RELAY, str(port)]
    return Forward(lambda: transport.open(argv, timeout_s=_OPEN_LIMIT_S))


def _send_up(near: socket.socket, far: Channel) -> None:
    with contextlib.suppress(OSError, Unreachable):
        while data := near.recv(_CHUNK_BYTES):
            far.send(data)
        far.send_eof()
