"""Starting a python3 on a target, and hearing how it ended."""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.bundle import bootstrap, bundle
from eagleops.errors import EagleError, NoInterpreter, TimedOut
from eagleops.transport.base import Channel, Transport
from eagleops.transport.deadline import Deadline
from eagleops.transport.lines import LineReader, StreamEnded


@attrs.frozen
class Interpreter:
    """A python3 over there that runs :mod:`eagleops.remote.runtime`.

    Attributes:
        python_version: For example ``3.11.7``.
        pid: As the target counts.
    """

    channel: Channel
    lines: LineReader
    python_version: str
    pid: int

    def epitaph(self) -> str:
        """How it ended, if the link is there to tell."""
        try:
            status = self.channel.wait(1.0)
        except EagleError:
            return "the link was lost"
        if status < 0:
            return f"the interpreter over there was ended by {signal.Signals(-status).name}"
        last = _text(self.channel).rpartition("\n")[2]
        return f"the interpreter over there ended with status {status}" + (last and f" ({last})")


def start(
    transport: Transport, python: str, options: Mapping[str, Any], timeout_s: float
) -> Interpreter:
    """Starts ``python`` and hands it the remote package: three round trips on an open connection.

    Raises:
        NoInterpreter: if the machine was reached and no python3 >= 3.8 answered.
        Unreachable: as :meth:`Transport.open`, and ConnectFailed as :meth:`Transport.explain`.
    """
    deadline = Deadline.after(timeout_s)
    while True:
        marker = f"eagleops-{secrets.token_hex(8)}"
        argv = [python, "-I", "-c", bootstrap(marker)]
        channel = transport.open(argv, timeout_s=deadline.remaining_s())
        try:
            return _greet(channel, marker, options, deadline)
        except StreamEnded:
            status, output = _last_words(channel)
            if not transport.adapt(output):
                raise transport.explain(output) or _no_interpreter(
                    transport.where, python, status, output
                ) from None
        except TimedOut as silence:
            channel.close()
            raise _no_answer(transport.where, python, timeout_s) from silence
        except BaseException:
            channel.close()
            raise


def as_line(message: Mapping[str, Any]) -> bytes:
    """One line of the protocol."""
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def _greet(
    channel: Channel, marker: str, options: Mapping[str, Any], deadline: Deadline
) -> Interpreter:
    lines = LineReader(channel)
    # Sent before the marker is seen: waiting for it would cost a round trip.
    channel.send(b"%d\n" % len(bundle()) + bundle() + as_line(options))
    lines.skip_past(f"\n{marker}\n".encode(), deadline)
    hello = json.loads(lines.line(deadline.remaining_s() or 0.0))
    return Interpreter(channel, lines, hello["python"], hello["pid"])


def _last_words(channel: Channel) -> tuple[int | None, str]:
    """Exit status and stderr of an interpreter that ended before it said hello."""
    status: int | None = None
    with contextlib.suppress(EagleError):
        status = channel.wait(1.0)
    channel.close()
    return status, _text(channel)


def _text(channel: Channel) -> str:
    return channel.stderr().decode("utf-8", "replace").strip()


def _no_interpreter(where: str, python: str, status: int | None, output: str) -> NoInterpreter:
    last = output.rpartition("\n")[2] or "no output"
    return NoInterpreter(
        problem=f"{python} did not answer (exit status {status}): {last}",
        where=where,
        way_out="Name a python3 of 3.8 or newer on that machine as `python:` in hosts.yaml.",
        host=where,
        exit_status_seen=status,
        output=output,
    )


def _no_answer(where: str, python: str, timeout_s: float) -> TimedOut:
    return TimedOut(
        problem=f"{python} did not answer within {timeout_s:g} s",
        where=where,
        way_out="Does the login shell wait for something, or print without end?",
        host=where,
        limit_s=timeout_s,
    )
