"""The transport that stays on this machine."""

from __future__ import annotations

import os
import select
import subprocess
import threading
from collections.abc import Mapping
from typing import IO

import attrs

from eagleops.errors import ConnectFailed, TimedOut
from eagleops.transport.base import Argv, Channel, Completed, encode
from eagleops.transport.completion import complete
from eagleops.transport.deadline import Deadline
from eagleops.transport.tail import Tail

_CHUNK_BYTES = 256 * 1024
# How long a send that waits for a reader takes to see that its channel was closed.
_CLOSED_CHECK_MS = 100


@attrs.define(eq=False)
class LocalTransport:
    """Runs commands as children of this process, each in a session of its own.

    Attributes:
        where: The machine as messages name it.
        env: The commands' whole environment, str or bytes; None for this process's own.
    """

    where: str = "this machine"
    # No repr: a person's environment has their tokens in it.
    env: Mapping[str, str] | Mapping[bytes, bytes] | None = attrs.field(default=None, repr=False)

    def open(self, argv: Argv, *, timeout_s: float | None = None) -> Channel:  # noqa: ARG002
        """As :meth:`eagleops.transport.base.Transport.open`; starting takes no time here.

        A program that is not there ends with status 127 and a line on stderr, as it would
        behind a login shell.
        """
        encoded = encode(argv)
        try:
            process = subprocess.Popen(
                encoded,
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # Ctrl-C at the terminal is for us: a command ends as it would over SSH.
                start_new_session=True,
            )
        except FileNotFoundError:
            return _NotStarted(127, encoded[0] + b": not found\n")
        except OSError as error:
            return _NotStarted(126, encoded[0] + f": {error.strerror}\n".encode())
        return LocalChannel(process)

    def run(self, argv: Argv, *, stdin: bytes = b"", timeout_s: float | None = None) -> Completed:
        """As :meth:`eagleops.transport.base.Transport.run`."""
        return complete(self, argv, stdin=stdin, timeout_s=timeout_s)

    def explain(self, stderr: str) -> ConnectFailed | None:  # noqa: ARG002
        """None: there is no way in that could refuse."""
        return None

    def adapt(self, stderr: str) -> bool:  # noqa: ARG002
        """False: there is only one way."""
        return False

    def close(self) -> None:
        """Nothing: no connection was opened."""

    def _environment(self) -> dict[bytes, bytes] | None:
        if self.env is None:
            return None
        return {os.fsencode(name): os.fsencode(value) for name, value in self.env.items()}


class LocalChannel:
    """A child's three pipes; see :class:`eagleops.transport.base.Channel`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._tail = Tail()
        # Held for each single read or write, so that close() never pulls a pipe away from
        # under one: its number may belong to another file a moment later.
        self._lock = threading.Lock()
        self._closed = False
        os.set_blocking(_number(process.stdin), False)
        self._reading = select.poll()
        self._open = {_number(process.stdout), _number(process.stderr)}
        self._stdout = _number(process.stdout)
        for stream in self._open:
            self._reading.register(stream, select.POLLIN)

    def send(self, data: bytes) -> None:
        """As :meth:`eagleops.transport.base.Channel.send`."""
        left = memoryview(data)
        writing = select.poll()
        writing.register(_number(self._process.stdin), select.POLLOUT)
        while left:
            with self._lock:
                if self._closed:
                    return
                try:
                    left = left[os.write(_number(self._process.stdin), left[:_CHUNK_BYTES]) :]
                    continue
                except BlockingIOError:
                    pass
                except BrokenPipeError:  # the command reads no more, which is its right
                    return
            writing.poll(_CLOSED_CHECK_MS)

    def send_eof(self) -> None:
        """As :meth:`eagleops.transport.base.Channel.send_eof`."""
        with self._lock:
            if not self._closed and self._process.stdin is not None:
                self._process.stdin.close()

    def recv(self, timeout_s: float | None = None) -> bytes:
        """As :meth:`eagleops.transport.base.Channel.recv`."""
        deadline = Deadline.after(timeout_s)
        while self._stdout in self._open:
            data = self._read(deadline).get(self._stdout)
            if data is not None:
                return data
        return b""

    def stderr(self) -> bytes:
        """As :meth:`eagleops.transport.base.Channel.stderr`."""
        return self._tail.bytes()

    def wait(self, timeout_s: float | None = None) -> int:
        """As :meth:`eagleops.transport.base.Channel.wait`."""
        deadline = Deadline.after(timeout_s)
        while self._open:
            self._read(deadline)
        try:
            return self._process.wait(deadline.remaining_s())
        except subprocess.TimeoutExpired as silence:
            raise _timed_out(deadline) from silence

    def close(self) -> None:
        """As :meth:`eagleops.transport.base.Channel.close`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._open.clear()
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
        if self._process.poll() is None:
            # Somebody has to ask for its exit status, or it stays a zombie.
            threading.Thread(target=self._process.wait, daemon=True).start()

    def _read(self, deadline: Deadline) -> dict[int, bytes]:
        """What each stream has to say, once one has; empty bytes at its end."""
        remaining_s = deadline.remaining_s()
        ready = self._reading.poll(None if remaining_s is None else remaining_s * 1000)
        if not ready:
            raise _timed_out(deadline)
        answer: dict[int, bytes] = {}
        with self._lock:
            for stream, _event in ready:
                if self._closed:
                    break
                data = os.read(stream, _CHUNK_BYTES)
                answer[stream] = data
                if not data:
                    self._reading.unregister(stream)
                    self._open.discard(stream)
                elif stream != self._stdout:
                    self._tail.add(data)
        return answer


class _NotStarted:
    """The channel of a program that could not be started."""

    def __init__(self, exit_status: int, stderr: bytes) -> None:
        self._exit_status = exit_status
        self._stderr = stderr

    def send(self, data: bytes) -> None:
        """Nobody reads."""

    def send_eof(self) -> None:
        """Nobody reads."""

    def recv(self, timeout_s: float | None = None) -> bytes:  # noqa: ARG002
        """The end of the stream."""
        return b""

    def stderr(self) -> bytes:
        """Why it could not be started."""
        return self._stderr

    def wait(self, timeout_s: float | None = None) -> int:  # noqa: ARG002
        """A shell's status for it."""
        return self._exit_status

    def close(self) -> None:
        """Nothing is open."""


def _number(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise ValueError("the child was started without a pipe")
    return stream.fileno()


def _timed_out(deadline: Deadline) -> TimedOut:
    return TimedOut(
        problem=f"nothing came within {deadline.limit_s:g} s", limit_s=deadline.limit_s or 0.0
    )
