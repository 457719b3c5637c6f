"""``eagleops <task>``: the console program of an installed package."""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterator
from typing import NoReturn

from invoke.exceptions import ParseError
from invoke.parser.context import ParserContext
from invoke.program import Program

from eagleops._version import __version__
from eagleops.errors import EagleError
from eagleops.tasks import streams

USAGE = 2
INTERRUPTED = 130
_WAY_OUT = "See: eagleops --list, eagleops --help TASK"
# Invoke's others rule shell commands that a task has it run, and none of these tasks does. It
# takes them anywhere, so that `reset-gpus --dry` would be no slip of the hand, and would kill.
_CORE_FLAGS = frozenset(
    ("complete", "debug", "help", "list", "list-format", "print-completion-script", "version")
)


class EagleProgram(Program):
    """Invoke's program, with this package's exit status for a usage error, and fewer flags.

    Invoke ends with 1 for it, which here means that a check failed.
    """

    @property
    def initial_context(self) -> ParserContext:
        """The flags that are no task's."""
        return ParserContext(args=[one for one in self.core_args() if one.name in _CORE_FLAGS])

    def parse_core_args(self) -> None:
        """Reads them; Invoke looks for the values of the others too."""
        super().parse_core_args()
        for one in self.core_args():
            if one.name not in _CORE_FLAGS:
                self.core[0].add_arg(one)

    def parse_core(self, argv: list[str] | None) -> None:
        """Reads the core flags."""
        with _ended_in_words():
            super().parse_core(argv)

    def parse_tasks(self) -> None:
        """Reads the tasks and their flags."""
        with _ended_in_words():
            super().parse_tasks()

    def parse_cleanup(self) -> None:
        """Prints what was asked for instead of a task: help, lists, completions."""
        with _ended_in_words():
            super().parse_cleanup()


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


def _way_out(error: ParseError) -> str:
    """The name that was meant, if one is near, and where all of them are."""
    from eagleops.tasks import namespace

    unknown = re.fullmatch(r"No idea what '(.+)' is!", str(error))
    task = error.context if error.context and error.context.name else None
    known = task.flags if task else namespace.task_names
    near = difflib.get_close_matches(unknown[1] if unknown else "", known, n=1)
    return f"Did you mean {near[0]}? {_WAY_OUT}" if near else _WAY_OUT


def _usage(error: ParseError) -> NoReturn:
    told = f"error: {error}\n{_way_out(error)}"
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

    told = UsageError(problem=str(error), way_out=_way_out(error))
    return error_document((error.context and error.context.name) or "", told)


def _status() -> int:
    """Runs the program on ``sys.argv``; the exit status that it ends with."""
    try:
        from eagleops.tasks import namespace

        # By its name also where Python was told to run the package: it stands in help's usage
        # line, and completion goes by it.
        program = EagleProgram(
            name="eagleops",
            binary="eagleops",
            binary_names=["eagleops"],
            namespace=namespace,
            version=__version__,
        )
        program.run()
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
