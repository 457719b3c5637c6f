"""``eagleops <task>``: the console program of an installed package."""

from __future__ import annotations

import sys

from invoke.exceptions import ParseError
from invoke.program import Program

from eagleops._version import __version__

USAGE = 2
_WAY_OUT = "See: eagleops --list, eagleops --help TASK"


class EagleProgram(Program):
    """Invoke's program, with this package's exit status for a usage error.

    Invoke ends with 1 for it, which here means that a check failed.
    """

    def parse_core(self, argv: list[str] | None) -> None:
        """Reads the core flags."""
        try:
            super().parse_core(argv)
        except ParseError as error:
            _usage(error)

    def parse_tasks(self) -> None:
        """Reads the tasks and their flags."""
        try:
            super().parse_tasks()
        except ParseError as error:
            _usage(error)


def _usage(error: ParseError) -> None:
    if "--json" in sys.argv:
        sys.stdout.write(_document(error) + "\n")
    else:
        sys.stderr.write(f"error: {error}\n{_WAY_OUT}\n")
    sys.exit(USAGE)


def _document(error: ParseError) -> str:
    from eagleops.errors import UsageError
    from eagleops.render.console import error_document

    told = UsageError(problem=str(error), way_out=_WAY_OUT)
    return error_document((error.context and error.context.name) or "", told)


def main() -> None:
    """Runs the program on ``sys.argv``."""
    from eagleops.tasks import namespace

    EagleProgram(name="eagleops", namespace=namespace, version=__version__).run()
