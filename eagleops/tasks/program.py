"""``eagleops <task>``: the console program of an installed package."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn

from invoke.exceptions import ParseError
from invoke.program import Program

from eagleops._version import __version__
from eagleops.errors import EagleError
from eagleops.tasks import streams

USAGE = 2
INTERRUPTED = 130
_WAY_OUT = "See: eagleops --list, eagleops --help TASK"


class EagleProgram(Program):
    """Invoke's program, with this package's exit status for a usage error.

    Invoke ends with 1 for it, which here means that a check failed.
    """

    def parse_core(self, argv: list[str] | None) -> None:
        """Reads the core flags."""
        with _ended_in_words():
            super().parse_core(argv)

    def parse_tasks(self) -> None:
        """Reads the tasks and their flags."""
        with _ended_in_words():
            super().parse_tasks()


@contextlib.contextmanager
def _ended_in_words() -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        _usage(error)


def _say(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # whoever is not there is told nothing
        sys.stderr.write(line + "\n")


def _interrupted() -> NoReturn:
    _say("interrupted")
    sys.exit(INTERRUPTED)


def _usage(error: ParseError) -> NoReturn:
    told = f"error: {error}\n{_WAY_OUT}"
    if "--json" in sys.argv:
        try:
            print(_document(error), flush=True)  # noqa: T201
        except OSError:
            streams.drop(sys.stdout)
            _say(told)
    else:
        _say(told)
    sys.exit(USAGE)


def _document(error: ParseError) -> str:
    from eagleops.errors import UsageError
    from eagleops.render.console import error_document

    told = UsageError(problem=str(error), way_out=_WAY_OUT)
    return error_document((error.context and error.context.name) or "", told)


def _status() -> int:
    """Runs the program on ``sys.argv``; the exit status that it ends with."""
    try:
        from eagleops.tasks import namespace

        EagleProgram(name="eagleops", namespace=namespace, version=__version__).run()
    except SystemExit as end:
        # Invoke's own answer to Ctrl-C is status 1 and no word.
        if isinstance(end.__context__, KeyboardInterrupt):
            _interrupted()
        return end.code if isinstance(end.code, int) else 0
    return 0


def main() -> None:
    """Runs the program on ``sys.argv``.

    What Invoke prints by itself (help, lists, the version) is a result like a command's: a reader
    who has gone is no error, a full disk is one.
    """
    streams.prepare()
    status = 0
    try:
        with streams.written():
            status = _status()
    except KeyboardInterrupt:  # while modules load
        _interrupted()
    except EagleError as error:
        if "--debug" in sys.argv:  # it is what was asked for
            raise
        _say(f"error: {error}")
        status = status or error.exit_status
    streams.settle()
    sys.exit(status)
