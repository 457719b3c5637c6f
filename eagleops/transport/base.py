"""What a transport is: argv and bytes go in, bytes come out.

A command is a list of arguments, never a string. An argument is ``str`` (undecodable
bytes as surrogate escapes, as :func:`os.fsdecode` gives them) or ``bytes``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

import attrs

from eagleops.errors import ConnectFailed

Argv = Sequence[str | bytes]


@attrs.frozen
class Completed:
    """A command that ran to its end.

    Attributes:
        argv: The command as bytes, as it was handed in (without any wrapper's prefix).
        exit_status: 0 to 255, or the negative signal number where the transport can tell.
    """

    argv: tuple[bytes, ...]
    exit_status: int
    stdout: bytes
    stderr: bytes
    elapsed_s: float


class Channel(Protocol):
    """A running command's byte streams. Not safe for two readers; one may read while one writes."""

    def send(self, data: bytes) -> None:
        """Writes all of ``data`` to the command's stdin.

        Raises:
            LinkLost: if the link is gone. A command that closed its stdin is no error.
        """

    def send_eof(self) -> None:
        """Closes the command's stdin."""

    def recv(self, timeout_s: float | None = None) -> bytes:
        """The next bytes of stdout; empty at its end.

        Raises:
            TimedOut: if nothing came within ``timeout_s``.
            LinkLost: if the link is gone before the command's end was told.
        """

    def stderr(self) -> bytes:
        """What has come on stderr so far; the last 1 MiB where it is more."""

    def wait(self, timeout_s: float | None = None) -> int:
        """The exit status, once both streams have ended.

        Raises:
            TimedOut: if the command has not ended within ``timeout_s``.
            LinkLost: if the link is gone before the status was told.
        """

    def close(self) -> None:
        """Lets go of the channel; a command that still runs loses its stdin."""


class Transport(Protocol):
    """How argv and bytes reach one machine.

    Attributes:
        where: The machine as messages name it, for example ``root@192.0.2.6`` or
            ``root@192.0.2.6 > pct 129``.
    """

    @property
    def where(self) -> str:
        """As messages name the machine."""

    def open(self, argv: Argv, *, timeout_s: float | None = None) -> Channel:
        """Starts ``argv`` and returns its streams; ``timeout_s`` bounds the start alone.

        Raises:
            Unreachable: ConnectFailed, HostKeyRefused, TimedOut or LinkLost.
        """

    def run(self, argv: Argv, *, stdin: bytes = b"", timeout_s: float | None = None) -> Completed:
        """Runs ``argv`` to its end and gathers both streams.

        Raises:
            Unreachable: as :meth:`open`; TimedOut and LinkLost mean an unknown outcome.
        """

    def explain(self, stderr: str) -> ConnectFailed | None:
        """What is wrong with the way in, if a failed command's ``stderr`` tells of that.

        For example a container that does not run; None where the command itself failed.
        """

    def adapt(self, stderr: str) -> bool:
        """Whether the way in now works differently, so that the same command can be tried again.

        A wrapper's program that does not know an option has not run the command.
        """

    def close(self) -> None:
        """Lets go of connections that this transport opened."""


def encode(argv: Argv) -> tuple[bytes, ...]:
    """``argv`` as the bytes that exec gets.

    Raises:
        ValueError: for an empty argv, or an argument with a NUL byte (exec allows neither).
        TypeError: for one text, which to Python is a list of its characters.
    """
    if isinstance(argv, (str, bytes)):
        raise TypeError("a command is a list of words, not one text")
    encoded = tuple(os.fsencode(argument) for argument in argv)
    if not encoded:
        raise ValueError("a command needs at least one argument")
    for position, argument in enumerate(encoded):
        if b"\0" in argument:
            raise ValueError(f"argument {position} has a NUL byte, which exec cannot pass on")
    return encoded
