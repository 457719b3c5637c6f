"""The two streams: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from eagleops.errors import EagleError, ServerDied, ServerNotReady
from eagleops.view import View

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


def stdout() -> Console:
    """The console of results."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def stderr() -> Console:
    """The console of progress and errors."""
    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else PIPE_WIDTH)


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
    head, _, rest = str(error).partition("\n")
    console.print(Text.assemble(("error: ", "bold red"), head), soft_wrap=True)
    if rest:
        console.print(Text(rest), soft_wrap=True)
