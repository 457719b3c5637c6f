"""A byte stream that can be slow, hang without closing, or be cut: a TCP proxy on loopback."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time

import attrs

from parts.reserved import free_port

_CHUNK_BYTES = 64 * 1024


@attrs.define(eq=False)
class Link:
    """A way to ``target`` through a port of one's own on 127.0.0.1.

    Attributes:
        port: Where to connect instead.
        delay_s: Added to each byte, each way; a round trip takes twice this much longer.
        connections: How many were made so far.
        bytes_carried: Sum of both directions.
    """

    port: int
    target: tuple[str, int]
    delay_s: float
    _reading: threading.Event = attrs.field(factory=threading.Event, init=False)
    connections: int = attrs.field(default=0, init=False)
    bytes_carried: int = attrs.field(default=0, init=False)
    _listener: socket.socket = attrs.field(alias="listener", kw_only=True)
    _flowing: threading.Event = attrs.field(factory=threading.Event, init=False)
    _up: set[socket.socket] = attrs.field(factory=set, init=False)
    _sockets: list[socket.socket] = attrs.field(factory=list, init=False)
    _hang_at: int | None = attrs.field(default=None, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    @classmethod
    def open(cls, host: str, port: int, *, delay_s: float = 0.0) -> Link:
        """Opens the way."""
        # A link that was closed stays so: nobody else is given its port.
        listener = socket.create_server(("127.0.0.1", free_port()), backlog=64)
        # Small, so that a sender's socket fills soon where this end stops reading.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)
        link = cls(listener.getsockname()[1], (host, port), delay_s, listener=listener)
        link._flowing.set()
        link._reading.set()
        threading.Thread(target=link._accept, name="link", daemon=True).start()
        return link

    def hang(self) -> None:
        """Passes no byte on any more, and closes nothing: as a frozen peer or a dead route."""
        self._flowing.clear()

    def hang_after(self, bytes_to_go: int) -> None:
        """Hangs once so many more bytes have gone through, both directions together."""
        self._hang_at = self.bytes_carried + bytes_to_go

    def stop_reading(self) -> None:
        """Takes nothing more from the client, so that its socket fills; answers still pass."""
        self._reading.clear()

    def resume(self) -> None:
        """Passes bytes on again, those held back first."""
        self._reading.set()
        self._flowing.set()

    def cut(self) -> None:
        """Resets every connection; new ones can be made."""
        sockets, self._sockets = self._sockets, []
        for end in sockets:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # shutdown wakes the threads that read it; close alone would not
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        """Cuts, and takes no more connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.resume()
        self.cut()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _peer = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:
                near.close()
                continue
            self.connections += 1
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(end)
            self._up.add(near)
            self._carry(near, far)
            self._carry(far, near)

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        held: queue.Queue[tuple[float, bytes]] = queue.Queue(maxsize=4096)
        for work in (self._take, self._give):
            end = source if work == self._take else sink
            threading.Thread(target=work, args=(end, held), name="link", daemon=True).start()

    def _take(self, source: socket.socket, held: queue.Queue[tuple[float, bytes]]) -> None:
        data = b"?"
        while data:
            try:
                data = source.recv(_CHUNK_BYTES)
            except OSError:
                data = b""
            if source in self._up:
                self._reading.wait()
            held.put((time.monotonic() + self.delay_s, data))

    def _give(self, sink: socket.socket, held: queue.Queue[tuple[float, bytes]]) -> None:
        while True:
            due, data = held.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self._flowing.wait()
            if self._hang_at is not None and self.bytes_carried >= self._hang_at:
                self._hang_at = None
                self.hang()
                self._flowing.wait()
            try:
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                return
            self.bytes_carried += len(data)
