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
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()
    except OSError as error:
        drop_stdout()
        sys.stdout.close()
        problem = f"the result cannot be written to stdout: {error.strerror}"
        raise EagleError(problem=problem) from None


def drop_stdout() -> None:
    """Lets go of what stdout could not take, so that Python's end does not stumble over it."""
    with contextlib.suppress(OSError, ValueError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
