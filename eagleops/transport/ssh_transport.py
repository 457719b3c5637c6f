"""Paramiko's transport with its gaps closed: exit signals, last words, peers that fall silent.

The first two stand on the table of channel handlers, which Paramiko keeps apart "for easier
subclass twiddling"; a test fails if a new Paramiko has no such table.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs
import paramiko
from paramiko.common import MSG_CHANNEL_CLOSE, MSG_CHANNEL_REQUEST
from paramiko.packet import Packetizer

Handler = Callable[[paramiko.Channel, paramiko.Message], None]
_HANDLERS: Mapping[int, Handler] = getattr(paramiko.Transport, "_channel_handler_table")  # noqa: B009

# So long may the socket take nothing of one packet (32 KiB) before the link counts as lost:
# Paramiko waits for ever, and whatever else wants to speak over the connection waits with it.
STALL_LIMIT_S = 15.0
# A peer that says nothing is asked each keepalive interval, and is lost after so many: as
# OpenSSH's ServerAliveInterval and ServerAliveCountMax. Paramiko's own keepalive asks for no
# answer, so nothing notices that none comes.
SILENT_INTERVALS = 3
_CHECK_S = 0.5


@attrs.define(eq=False)
class Guard:
    """What this module keeps of one channel.

    Attributes:
        speaking: Held while something is sent on the channel. Paramiko writes a message under
            its own lock and sends it after letting go: an end-of-file could then follow the
            channel's close, and OpenSSH ends the whole connection for that ("packet referred
            to nonexistent channel").
        exit_signal: The signal that ended the command, without SIG; Paramiko passes over it,
            and a killed command looks like a broken link.
    """

    speaking: threading.Lock = attrs.field(factory=threading.Lock)
    exit_signal: str | None = None


class _Packetizer(Packetizer):
    """Paramiko's packetizer, which also tells how long nothing has come or gone."""

    def __init__(self, sock: Any) -> None:
        super().__init__(sock)
        self._writing_since: float | None = None
        self._heard_at = time.monotonic()

    @property
    def stall_s(self) -> float:
        """How long the socket has been taking one packet."""
        since = self._writing_since
        return 0.0 if since is None else time.monotonic() - since

    @property
    def silence_s(self) -> float:
        """How long ago the last packet came."""
        return time.monotonic() - self._heard_at

    def read_message(self) -> Any:
        """Reads a packet from the socket."""
        message = super().read_message()
        self._heard_at = time.monotonic()
        return message

    def write_all(self, out: Any) -> None:
        """Writes a packet to the socket."""
        self._writing_since = time.monotonic()
        try:
            super().write_all(out)
        finally:
            self._writing_since = None


class Transport(paramiko.Transport):
    """See the module.

    Attributes:
        keepalive_s: How long the peer may be silent before it is asked; 0 for never.
    """

    def __init__(self, sock: Any, **settings: Any) -> None:
        super().__init__(sock, packetizer_class=_Packetizer, **settings)
        self.keepalive_s = 0.0
        self._packets = cast("_Packetizer", self.packetizer)
        self._guards: weakref.WeakKeyDictionary[paramiko.Channel, Guard] = (
            weakref.WeakKeyDictionary()
        )

    def run(self) -> None:
        """Reads the connection, and has somebody look whether it is alive."""
        threading.Thread(target=self._watch, name="link-watch", daemon=True).start()
        super().run()

    def _watch(self) -> None:
        asked_at = 0.0
        while self.is_alive():
            self.join(min(_CHECK_S, self.keepalive_s / 2) if self.keepalive_s else _CHECK_S)
            silence_s, stall_s = self._packets.silence_s, self._packets.stall_s
            if stall_s > STALL_LIMIT_S:
                self.close()
            if not self.keepalive_s:
                continue
            if silence_s > SILENT_INTERVALS * self.keepalive_s:
                self.close()
            elif min(silence_s, time.monotonic() - asked_at) > self.keepalive_s:
                asked_at = time.monotonic()
                # Its answer, whatever it says, is a packet heard; the wait for it is not ours.
                threading.Thread(target=self._ask, name="keepalive", daemon=True).start()

    def _ask(self) -> None:
        with contextlib.suppress(paramiko.SSHException, OSError, EOFError):
            self.global_request("keepalive@openssh.com", wait=True)

    def guard(self, channel: paramiko.Channel) -> Guard:
        """The channel's guard."""
        return self._guards.setdefault(channel, Guard())


def guard(channel: paramiko.Channel) -> Guard:
    """The guard of a channel of a :class:`Transport`."""
    transport = channel.get_transport()
    if not isinstance(transport, Transport):
        raise TypeError(f"not a channel of ours: {transport!r}")
    return transport.guard(channel)


def _on_request(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Notes ``exit-signal`` and hands every request on."""
    start = message.packet.tell()
    if message.get_text() == "exit-signal":
        message.get_boolean()
        guard(channel).exit_signal = message.get_text()
    message.packet.seek(start)
    _HANDLERS[MSG_CHANNEL_REQUEST](channel, message)


def _on_close(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Answers the peer's close, but not between the writing and the sending of our words."""
    speaking = guard(channel).speaking
    if speaking.acquire(blocking=False):
        try:
            _HANDLERS[MSG_CHANNEL_CLOSE](channel, message)
        finally:
            speaking.release()
        return
    with channel.lock:
        # Whoever waits for room to send gives up, as after an end-of-file of ours.
        channel.eof_sent = True
        channel.out_buffer_cv.notify_all()

    def answer() -> None:
        with speaking:
            _HANDLERS[MSG_CHANNEL_CLOSE](channel, message)

    # This is the thread that reads the connection: it must not wait.
    threading.Thread(target=answer, name="channel-close", daemon=True).start()


setattr(  # noqa: B010 - Paramiko's own name, unknown to its type stubs
    Transport,
    "_channel_handler_table",
    {**_HANDLERS, MSG_CHANNEL_REQUEST: _on_request, MSG_CHANNEL_CLOSE: _on_close},
)
