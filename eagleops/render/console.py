"""The two streams: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol, TextIO, cast

from rich.console import Console
from rich.text import Text

from eagleops.errors import EagleError, ServerDied, ServerNotReady
from eagleops.view import View, for_terminal

# A pipe has no width of its own; a table that is cut at 80 columns is of no use to grep.
PIPE_WIDTH = 200
SCHEMA = 1


class Result(Protocol):
    """What a command ends with."""

    @property
    def ok(self) -> bool:
        """Whether all that was asked for holds."""

    def to_dict(self) -> dict[str, Any]:
        """The body of its ``--json`` document."""

    def view(self) -> View:
        """What it looks like."""


class _Console(Console):
    """A console that leaves it to its caller what a reader who has gone means."""

    def on_broken_pipe(self) -> None:
        """Raises what was caught; rich would end the program, and whatever it is at."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


class _Unheard(io.TextIOBase):
    """stderr, where words that cannot be written are dropped and stop nobody's work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's own, by which rich draws."""
        return self._stream.encoding

    def write(self, text: str) -> int:
        """Writes what can be written."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hands on what can be handed on."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's descriptor."""
        return self._stream.fileno()


def stdout() -> Console:
    """The console of results."""
    return _Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def stderr() -> Console:
    """The console of progress and errors; it never raises."""
    width = None if sys.stderr.isatty() else PIPE_WIDTH
    return _Console(file=cast("TextIO", _Unheard(sys.stderr)), highlight=False, width=width)


def show(result: Result) -> None:
    """Draws a result on stdout; one that is a text (a hosts.yaml, say) as it is, never wrapped."""
    text = getattr(result, "text", None)
    if isinstance(text, str):
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        stdout().print(result.view())


def document(command: str, body: Mapping[str, Any]) -> str:
    """A ``--json`` document: one line, ASCII, so that every byte survives every pipe."""
    return json.dumps({"schema": SCHEMA, "command": command, **body}, default=str)


def error_document(command: str, error: EagleError) -> str:
    """The ``--json`` document of a command that ended in ``error``."""
    body = {"ok": False, "host": getattr(error, "host", "") or None, "error": error.to_dict()}
    return document(command, body)


def show_error(error: EagleError) -> None:
    """Draws an error on stderr: one to three lines, after the log's last lines if it has any."""
    console = stderr()
    if isinstance(error, (ServerDied, ServerNotReady)) and error.log_tail:
        console.print(Text("\n".join(error.log_tail[-15:]), style="dim"))
    head, _, rest = for_terminal(str(error)).partition("\n")
    console.print(Text.assemble(("error: ", "bold red"), head), soft_wrap=True)
    if rest:
        console.print(Text(rest), soft_wrap=True)
