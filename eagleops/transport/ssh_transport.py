"""Paramiko's transport with two of its gaps closed: what ended a command, and who speaks last.

Both stand on the table of channel handlers, which Paramiko keeps apart "for easier subclass
twiddling"; a test fails if a new Paramiko has no such table.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import paramiko
from paramiko.common import MSG_CHANNEL_CLOSE, MSG_CHANNEL_REQUEST

Handler = Callable[[paramiko.Channel, paramiko.Message], None]
_HANDLERS: Mapping[int, Handler] = getattr(paramiko.Transport, "_channel_handler_table")  # noqa: B009


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


class Transport(paramiko.Transport):
    """See the module."""

    def __init__(self, sock: Any, **settings: Any) -> None:
        super().__init__(sock, **settings)
        self._guards: weakref.WeakKeyDictionary[paramiko.Channel, Guard] = (
            weakref.WeakKeyDictionary()
        )

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
