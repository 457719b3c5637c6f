"""What every command has in common: flags, output, errors, exit status.

A command is a function of a :class:`Call` and its own flags that returns a result; the
decorator gives it ``--json``, ``--inventory`` and ``--debug``, draws the result, and maps
errors to exit statuses:

====  ==========================================================================
0     done, and all holds
1     a check failed
2     usage, inventory or profile error, before anything was touched
3     cannot tell: a witness was blind
4     a machine could not be reached
130   interrupted
====  ==========================================================================

Heavy modules load inside functions: ``invoke --list`` is quick.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import attrs
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import Task, task

from eagleops.errors import UsageError
from eagleops.tasks import numbers, streams, texts

if TYPE_CHECKING:
    from eagleops.library import Host, Library
    from eagleops.render.console import Result
    from eagleops.workflows.progress import Progress

INTERRUPTED = 130
# What these start outlives them; compare, sweep and nightly stop their servers themselves.
_LEAVES_A_SERVER = frozenset({"launch", "reproduce"})

COMMON_HELP = {
    "json": "print one JSON document on stdout",
    "inventory": "another hosts.yaml ($EAGLEOPS_INVENTORY, else ./hosts.yaml)",
    "debug": "log each step, and show tracebacks",
}
HOST_HELP = {"host": "a host or container of hosts.yaml (its default host without)"}
NAME_HELP = {"name": "the server's name (the only one there without)"}


@attrs.define(eq=False)
class Call:
    """One invocation of a command.

    Attributes:
        json: Whether the result is a JSON document; then nothing else is on stdout.
    """

    command: str
    json: bool
    inventory: str | None
    _library: Library | None = attrs.field(default=None, init=False)

    def library(self) -> Library:
        """The inventory that the flags name, with its machines."""
        from eagleops.library import load

        if self._library is None:
            self._library = load(self.inventory)
        return self._library

    def host(self, name: str | None) -> Host:
        """The host or container of that name; the default one without."""
        return self.library().host(name)

    def progress(self) -> AbstractContextManager[Progress]:
        """A progress display on stderr; with ``--json`` one that draws nothing."""
        if self.json:
            from eagleops.workflows.progress import unwatched

            return nullcontext(unwatched)
        from eagleops.render.console import stderr
        from eagleops.render.progress import Display

        return Display(stderr())

    def close(self) -> None:
        """Lets go of what was opened."""
        if self._library is not None:
            self._library.close()


Command = Callable[..., "Result | None"]


def command(
    help: Mapping[str, str] | None = None,  # noqa: A002 - Invoke's own name for it
    repeatable: Sequence[str] = (),
    groups: Mapping[str, type[Any]] | None = None,
) -> Callable[[Command], Task[Any]]:
    """Makes an Invoke task of a command.

    Args:
        help: A text for each of its own flags, as Invoke takes them.
        repeatable: Those of its flags that may be given more than once.
        groups: Flags that several commands have, by the parameter that takes them all: a class
            whose fields they are.
    """

    def decorate(body: Command) -> Task[Any]:
        name = body.__name__.replace("_", "-")

        def run(
            context: Context,
            *,
            json: bool = False,
            inventory: str | None = None,
            debug: bool = False,
            **flags: Any,
        ) -> None:
            def read() -> Mapping[str, Any]:
                texts.hold({**flags, "inventory": inventory})
                return _read(body, groups or {}, flags, dry=bool(context.config.run.dry))

            _run(Call(name, json, inventory), body, read, debug=debug)

        run.__doc__ = body.__doc__
        run.__name__ = body.__name__
        run.__module__ = body.__module__
        run.__signature__ = _signature(body, groups or {}, run)  # type: ignore[attr-defined]
        made: Task[Any] = task(
            auto_shortflags=False,
            help={**COMMON_HELP, **(help or {})},
            iterable=list(repeatable),
        )(run)
        return made

    return decorate


def _signature(
    body: Command, groups: Mapping[str, type[Any]], run: Callable[..., None]
) -> inspect.Signature:
    """The flags that Invoke reads: the command's own, those of its groups, then the common ones."""
    own = list(inspect.signature(body).parameters.values())[1:]
    own = [p for p in own if p.name not in groups]
    own += [p for kind in groups.values() for p in inspect.signature(kind).parameters.values()]
    context, *common = inspect.signature(run).parameters.values()
    named = [p for p in common if p.kind is inspect.Parameter.KEYWORD_ONLY]
    plain = [p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in [*own, *named]]
    plain = [numbers.as_text(p) if numbers.is_number(p) else p for p in plain]
    return inspect.Signature([context.replace(name="context"), *plain])


def _read(
    body: Command, groups: Mapping[str, type[Any]], flags: Mapping[str, Any], *, dry: bool
) -> dict[str, Any]:
    """What the command is called with: its numbers as numbers, its groups as objects."""
    if dry:
        raise UsageError(
            problem="Invoke's --dry echoes shell commands, and this is none: it would be done",
            way_out="reset-gpus, compare, reproduce and nightly have --dry-run.",
        )
    own, read = dict(flags), {}
    for parameter, kind in groups.items():
        names = inspect.signature(kind).parameters
        read[parameter] = kind(**numbers.read(kind, {name: own.pop(name) for name in names}))
    return {**numbers.read(body, own), **read}


def _run(call: Call, body: Command, flags: Callable[[], Mapping[str, Any]], *, debug: bool) -> None:
    from eagleops import log
    from eagleops.errors import EagleError

    streams.prepare()
    log.configure(debug=debug)
    try:
        result = body(call, **flags())
        _finish(call, result)
    except EagleError as error:
        if debug:
            raise
        _complain(call, error)
        raise Exit(code=error.exit_status) from None
    except KeyboardInterrupt:
        raise _interrupted(call) from None
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): there is nobody to tell.
        sys.stderr.close()
        raise Exit(code=0) from None
    except Exit:
        raise
    except Exception as error:
        if debug:
            raise
        told = EagleError(
            problem=f"internal error: {type(error).__name__}: {error}",
            way_out="This is a bug of eagleops; --debug shows the traceback to report.",
        )
        _complain(call, told)
        raise Exit(code=1) from None
    finally:
        _let_go(call)


def _let_go(call: Call) -> None:
    """Closes what was opened; a second Ctrl-C ends even that."""
    streams.settle()
    try:
        call.close()
    except KeyboardInterrupt:
        raise Exit(code=INTERRUPTED) from None


def _interrupted(call: Call) -> Exit:
    from eagleops.errors import Interrupted

    way_out = "What was started goes on: see eagleops status, or end it with eagleops stop."
    told = Interrupted(
        problem="interrupted", way_out=way_out if call.command in _LEAVES_A_SERVER else ""
    )
    if not call.json:
        return Exit(str(told), code=INTERRUPTED)
    _complain(call, told)
    return Exit(code=INTERRUPTED)


def _finish(call: Call, result: Result | None) -> None:
    """Shows the result; the exit status tells of the job, whether or not anybody reads."""
    if result is None:
        return
    from eagleops.render import console

    with streams.written():
        if call.json:
            print(console.document(call.command, result.to_dict()), flush=True)  # noqa: T201
        else:
            console.show(result)
    status = getattr(result, "exit_status", 0 if result.ok else 1)
    if status:
        raise Exit(code=status)


def _complain(call: Call, error: Any) -> None:
    from eagleops.render import console

    if not call.json:
        console.show_error(error)
        return
    try:
        print(console.error_document(call.command, error), flush=True)  # noqa: T201
    except (OSError, ValueError):  # nobody can be shown the document
        streams.drop(sys.stdout)
        console.show_error(error)
