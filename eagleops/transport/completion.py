"""Running a command to its end over any transport: open, feed, gather, bound."""

from __future__ import annotations

import contextlib
import threading
import time

from eagleops.errors import LinkLost, TimedOut
from eagleops.transport.base import Argv, Channel, Completed, Transport, encode
from eagleops.transport.deadline import Deadline


def complete(
    transport: Transport, argv: Argv, *, stdin: bytes, timeout_s: float | None
) -> Completed:
    """Runs ``argv`` to its end and gathers both streams.

    Args:
        transport: The way to the machine.
        argv: The command.
        stdin: What it reads; its stdin ends after that.
        timeout_s: Limit in seconds of the whole, connecting included; None for no limit.

    Raises:
        Unreachable: as :meth:`Transport.open`; TimedOut and LinkLost mean an unknown outcome.
    """
    encoded = encode(argv)
    started = time.monotonic()
    deadline = Deadline.after(timeout_s)
    channel = transport.open(encoded, timeout_s=timeout_s)
    try:
        if stdin:
            # Both directions at once: a command may answer before it has read everything.
            threading.Thread(target=_feed, args=(channel, stdin), daemon=True).start()
        else:
            channel.send_eof()
        chunks = []
        while data := channel.recv(deadline.remaining_s()):
            chunks.append(data)
        exit_status = channel.wait(deadline.remaining_s())
    except TimedOut as silence:
        raise TimedOut(
            problem=f"{_name(encoded)} did not end within {timeout_s:g} s; it may still run",
            where=transport.where,
            host=transport.where,
            limit_s=timeout_s or 0.0,
        ) from silence
    except LinkLost as lost:
        raise LinkLost(
            problem=f"{_name(encoded)}: {lost.problem}; its outcome is unknown",
            where=transport.where,
            host=transport.where,
        ) from lost
    finally:
        channel.close()
    elapsed_s = time.monotonic() - started
    return Completed(encoded, exit_status, b"".join(chunks), channel.stderr(), elapsed_s)


def _feed(channel: Channel, stdin: bytes) -> None:
    # Whoever reads the channel learns of a lost link too, and says so.
    with contextlib.suppress(LinkLost, TimedOut):
        channel.send(stdin)
        channel.send_eof()


def _name(argv: tuple[bytes, ...]) -> str:
    """The program alone: arguments may be long, or secret."""
    return argv[0].decode("utf-8", "backslashreplace")
