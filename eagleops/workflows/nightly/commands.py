"""The user's own commands, and what is expected of them."""

from __future__ import annotations

import base64
import math
from typing import Any

from eagleops.errors import OperationFailed
from eagleops.inventory.suite import COMMAND, CommandCheck, SuiteEntry
from eagleops.nights.finding import SEPARATOR
from eagleops.nights.one_line import one_line
from eagleops.remote import redact
from eagleops.workflows.nightly.patterns import search
from eagleops.workflows.nightly.visit import Visit

MOST_CHARACTERS = 200
TIME_LIMIT = "time_limit"


def names(suite: SuiteEntry, *, needs_idle_gpus: bool | None = None) -> tuple[str, ...]:
    """The commands that are looked at; with ``needs_idle_gpus``, those that do, or do not."""
    return tuple(
        name
        for name, one in suite.commands.items()
        if suite.rule(f"{COMMAND}{SEPARATOR}{name}").on
        and needs_idle_gpus in {None, one.needs_idle_gpus}
    )


def run(visit: Visit, name: str) -> None:
    """Runs one command; one that hangs is ended over there at its limit.

    Raises:
        Unreachable: if the machine was lost.
    """
    visit.heading(f"command {name}")
    with visit.guarded(COMMAND, name):
        _run(visit, name, visit.suite.commands[name])
    visit.log.done(visit.host, f"command:{name}")


def _run(visit: Visit, name: str, command: CommandCheck) -> None:
    limit_s = min(command.timeout_s, visit.watch.limits.left_s)
    try:
        result = visit.machine.call("execute", argv=list(command.run), time_limit_s=limit_s)
    except OperationFailed as failed:
        visit.watch()  # it may be the night's own limit
        late = f"not at its end after {limit_s:g} s, and ended then"
        why = late if failed.kind == TIME_LIMIT else failed.problem
        _tell(visit, name, command, why, well=False)
        return
    output = base64.b64decode(result["stdout"]).decode("utf-8", "replace")
    errors = base64.b64decode(result["stderr"]).decode("utf-8", "replace")
    figure, problem = visit.watch.beside(lambda: _judged(command, result["exit_status"], output))
    if problem:
        said = _last_line(errors) or _last_line(output)
        message = f"{problem}. It said: {said}" if said else problem
        _tell(visit, name, command, message, well=False, value=figure)
        return
    seen = f"{figure:g} {command.unit}".strip() if figure is not None else "as expected"
    told = f"{seen}, after {result['elapsed_s']:.1f} s"
    _tell(visit, name, command, told, well=True, value=figure)


def _judged(command: CommandCheck, exit_status: int, output: str) -> tuple[float | None, str]:
    """The figure that it told, and what is not as expected; empty for nothing.

    Raises:
        CannotTell: if an expression takes too long.
    """
    if exit_status != command.exit_status:
        ended = f"signal {-exit_status}" if exit_status < 0 else f"status {exit_status}"
        return None, f"ended with {ended}, expected {command.exit_status}"
    if command.stdout is not None and search(command.stdout, output) is None:
        return None, f"its output does not hold {command.stdout!r}"
    if command.number is None:
        return None, ""
    figure = _figure(command.number, output)
    if figure is None:
        return None, f"its output holds no number by {command.number!r}"
    shown = f"{figure:g} {command.unit}".strip()
    if command.lowest is not None and figure < command.lowest:
        return figure, f"{shown} is below {command.lowest:g}"
    above = command.highest is not None and figure > command.highest
    return figure, f"{shown} is above {command.highest:g}" if above else ""


def _figure(expression: str, output: str) -> float | None:
    """The figure in the expression's first group; None where there is none."""
    groups = search(expression, output)
    try:
        figure = float(groups[0] or "") if groups else math.nan
    except ValueError:
        return None
    return figure if math.isfinite(figure) else None


def _tell(
    visit: Visit,
    name: str,
    command: CommandCheck,
    message: str,
    *,
    well: bool,
    value: float | None = None,
) -> None:
    limit = command.lowest if command.lowest is not None else command.highest
    more: dict[str, Any] = {"value": value, "unit": command.unit, "limit": limit}
    more["facts"] = {"run": redact.argv(command.run)}
    if well:
        visit.passed(COMMAND, message, name, **more)
    else:
        visit.faulty(COMMAND, message, name, **more)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return one_line(redact.text(lines[-1]), MOST_CHARACTERS) if lines else ""
