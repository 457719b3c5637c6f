"""The standard streams as a command finds them: closed, full, or of another alphabet.

What a command does must not depend on who reads it. Progress that nobody can be shown is
dropped; a result that cannot be written is an error, after the fact.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from eagleops.errors import EagleError


def prepare() -> None:
    """Makes the streams safe to write to.

    A descriptor that was closed by the caller is opened on /dev/null (else a connection would
    get its number), and a character that the terminal does not have becomes a question mark.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            mode = "r" if descriptor == 0 else "w"
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 - for good
            setattr(sys, name, stream)
        if descriptor > 0 and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextlib.contextmanager
def written() -> Iterator[None]:
    """For the writing of a result: a reader who has gone (``| head``) is no error.

    Raises:
        EagleError: if it cannot be written, on a full disk for example.
    """
    try:
        yield
        if not sys.stdout.closed:
            sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
    except OSError as error:
        drop(sys.stdout)
        sys.stdout.close()  # so that the error goes to stderr, as no document would be read
        problem = f"the result cannot be written to stdout: {error.strerror}"
        raise EagleError(problem=problem) from None


def settle() -> None:
    """Lets go of what either stream could not take: Python ends with status 120 for the rest."""
    _settle(sys.stdout)
    _settle(sys.stderr)


def _settle(stream: TextIO) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        drop(stream)


def drop(stream: TextIO) -> None:
    """Sends to /dev/null what a stream could not take, so that Python's end does not stumble."""
    with contextlib.suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, stream.fileno())
        os.close(devnull)
