"""A command over SSH: one session channel straight from Paramiko's transport."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

import paramiko

from eagleops.errors import ConnectFailed, TimedOut, Unreachable
from eagleops.transport.deadline import Deadline
from eagleops.transport.ssh_errors import LINK_ERRORS, link_lost
from eagleops.transport.ssh_transport import guard
from eagleops.transport.tail import Tail

_CHUNK_BYTES = 256 * 1024
# A channel's close is a message that a hung peer's full socket buffer can hold up.
_CLOSE_LIMIT_S = 1.0
# How long the request for a channel may wait for a socket that takes nothing any more.
_SEND_LIMIT_S = 0.5


class NothingRan(Exception):
    """The link was found dead or silent before the command was sent: it may be sent again.

    Args:
        error: What to raise if it is not.
    """

    def __init__(self, error: Unreachable) -> None:
        super().__init__(str(error))
        self.error = error


class Refused(NothingRan):
    """sshd answered, and opens no further channel on this connection (MaxSessions)."""


def start(
    transport: paramiko.Transport,
    line: bytes,
    deadline: Deadline,
    where: str,
    released: Callable[[], None],
) -> SshChannel:
    """Starts a command line.

    Args:
        transport: An authenticated connection.
        line: What the login shell reads.
        deadline: For channel and command.
        where: The host as messages name it.
        released: Called once the channel has been closed.

    Raises:
        NothingRan: if no channel could be opened.
        ConnectFailed: if sshd refused to run it.
        TimedOut: if the answer to the command did not come in time; it may run.
        LinkLost: if the link broke after the command was sent.
    """
    try:
        channel = _open(transport, "session", deadline)
    except paramiko.ChannelException as error:
        raise Refused(
            ConnectFailed(
                problem=f"sshd refuses a channel: {error}",
                where=where,
                way_out="See MaxSessions in its sshd_config; 0 allows none.",
                host=where,
            )
        ) from error
    except LINK_ERRORS as error:
        lost = _timed_out(where, deadline) if deadline.passed else link_lost(where)
        raise NothingRan(lost) from error
    try:
        # exec_command waits without a limit; a closed channel ends its wait.
        with _otherwise(channel.close, deadline.remaining_s() or 0.0):
            channel.exec_command(line)
    except LINK_ERRORS as error:
        raise _exec_failed(transport, deadline, where) from error
    return SshChannel(channel, where, released)


def _exec_failed(transport: paramiko.Transport, deadline: Deadline, where: str) -> Unreachable:
    if deadline.passed:
        return _timed_out(where, deadline)
    if not transport.is_active():
        return link_lost(where)
    return ConnectFailed(
        problem="sshd refused to run the command",
        where=where,
        way_out="Its log says why (journalctl -u ssh): too many processes, for example.",
        host=where,
    )


def _open(
    transport: paramiko.Transport,
    kind: str,
    deadline: Deadline,
    place: tuple[str, int] | None = None,
) -> paramiko.Channel:
    """Opens a channel. Paramiko's own limit does not count until the request is sent."""
    remaining_s = deadline.remaining_s() or 0.0
    with _otherwise(transport.close, remaining_s + _SEND_LIMIT_S):
        return transport.open_channel(kind, place, ("127.0.0.1", 0), timeout=remaining_s)


@contextlib.contextmanager
def _otherwise(give_up: Callable[[], object], after_s: float) -> Iterator[None]:
    """Calls ``give_up`` if the block has not ended after so many seconds."""
    watchdog = threading.Timer(after_s, give_up)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def connect(
    transport: paramiko.Transport,
    place: tuple[str, int],
    deadline: Deadline,
    where: str,
    released: Callable[[], None],
) -> SshChannel:
    """A TCP connection from the host to ``place``, as :func:`start` otherwise.

    Raises:
        ConnectFailed: if nothing listens there, or sshd does not forward.
        TimedOut, LinkLost: as the link.
    """
    try:
        channel = _open(transport, "direct-tcpip", deadline, place)
    except paramiko.ChannelException as error:
        raise ConnectFailed(
            problem=f"no connection from there to {place[0]}:{place[1]}: {error.text}",
            where=where,
            way_out="Does something listen there, and does sshd forward (AllowTcpForwarding)?",
            host=where,
        ) from error
    except LINK_ERRORS as error:
        raise (_timed_out(where, deadline) if deadline.passed else link_lost(where)) from error
    return SshChannel(channel, where, released)


class _News(threading.Event):
    """Set when either stream has something, or has ended.

    Paramiko clears it when one of the two is empty, which says nothing of the other.
    """

    def clear(self) -> None:
        """Nothing: see :meth:`take`."""

    def take(self) -> None:
        """Clears it: whatever comes from now on sets it again."""
        super().clear()


class SshChannel:
    """See :class:`eagleops.transport.base.Channel`.

    Both streams are read together, whichever has something: Paramiko's window is shared by
    them, and a command that fills one while only the other is read would wait for ever
    (https://github.com/paramiko/paramiko/issues/1778).
    """

    def __init__(self, channel: paramiko.Channel, where: str, released: Callable[[], None]) -> None:
        self._channel = channel
        self._where = where
        self._released = released
        self._guard = guard(channel)
        self._tail = Tail()
        self._closed = False
        # Not the channel's fileno(): that pipe may be written to after it was closed, when
        # its number belongs to another connection's socket.
        self._news = _News()
        channel.in_buffer.set_event(self._news)
        channel.in_stderr_buffer.set_event(self._news)

    def send(self, data: bytes) -> None:
        """As :meth:`eagleops.transport.base.Channel.send`."""
        left = memoryview(data)
        while left and not self._closed:
            try:
                with self._guard.speaking:
                    sent = self._channel.send(left[:_CHUNK_BYTES].tobytes())
            except LINK_ERRORS as error:
                if self._link_is_up():
                    return  # the command reads no more, which is its right
                raise link_lost(self._where) from error
            if sent == 0:
                return
            left = left[sent:]

    def send_eof(self) -> None:
        """As :meth:`eagleops.transport.base.Channel.send_eof`."""
        with self._link_errors(), self._guard.speaking:
            self._channel.shutdown_write()

    def recv(self, timeout_s: float | None = None) -> bytes:
        """As :meth:`eagleops.transport.base.Channel.recv`."""
        deadline = Deadline.after(timeout_s)
        while True:
            self._news.take()
            ended = self._channel.eof_received or self._channel.closed
            self._read_stderr()
            if self._channel.recv_ready():
                return self._channel.recv(_CHUNK_BYTES)
            if ended:
                self._check_end()
                return b""
            self._await(deadline)

    def stderr(self) -> bytes:
        """As :meth:`eagleops.transport.base.Channel.stderr`."""
        return self._tail.bytes()

    def wait(self, timeout_s: float | None = None) -> int:
        """As :meth:`eagleops.transport.base.Channel.wait`."""
        deadline = Deadline.after(timeout_s)
        while self.recv(deadline.remaining_s()):
            pass
        if not self._channel.status_event.wait(deadline.remaining_s()):
            raise _timed_out(self._where, deadline)
        self._read_stderr()
        if self._channel.exit_status >= 0:
            return self._channel.exit_status
        name = self._guard.exit_signal
        if name is None:
            raise link_lost(self._where, "the link broke before the command's end was told")
        return -getattr(signal, f"SIG{name}", signal.SIGKILL)

    def close(self) -> None:
        """As :meth:`eagleops.transport.base.Channel.close`."""
        if self._closed:
            return
        self._closed = True
        # In a thread, for it may have to wait for a socket that takes nothing any more.
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(_CLOSE_LIMIT_S)
        if closing.is_alive():
            # The socket is stuck under somebody's words: nothing more will come of the link.
            self._channel.get_transport().close()
        self._released()

    def _close(self) -> None:
        # A send that waits for room gives way; a second close finds nothing to do.
        with self._channel.lock:
            self._channel.eof_sent = True
            self._channel.out_buffer_cv.notify_all()
        with contextlib.suppress(*LINK_ERRORS), self._guard.speaking:
            self._channel.close()

    def _await(self, deadline: Deadline) -> None:
        if not self._news.wait(deadline.remaining_s()):
            raise _timed_out(self._where, deadline)

    def _read_stderr(self) -> None:
        while self._channel.recv_stderr_ready():
            self._tail.add(self._channel.recv_stderr(_CHUNK_BYTES))

    def _check_end(self) -> None:
        """Raises LinkLost if stdout ended because the link did."""
        if not self._closed and not self._channel.eof_received and not self._link_is_up():
            raise link_lost(self._where)

    def _link_is_up(self) -> bool:
        return self._channel.get_transport().is_active()

    @contextlib.contextmanager
    def _link_errors(self) -> Iterator[None]:
        try:
            yield
        except LINK_ERRORS as error:
            if not self._link_is_up():
                raise link_lost(self._where) from error


def _timed_out(where: str, deadline: Deadline) -> TimedOut:
    return TimedOut(
        problem=f"nothing came within {deadline.limit_s:g} s",
        where=where,
        host=where,
        limit_s=deadline.limit_s or 0.0,
    )
