"""Numbers among a command's flags.

They are read here and not by Invoke, which answers a slip of the hand with a traceback. Every
number of a command is a count, a size, a port, a PID or a time: none is below 0, and none is
infinite.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from eagleops.errors import UsageError

# SQLite's largest number; nobody counts so far.
MOST = 2**63 - 1


def is_number(parameter: inspect.Parameter) -> bool:
    """Whether a flag takes a number, by its default."""
    return type(parameter.default) in {int, float}


def as_text(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter as Invoke is to read it."""
    return parameter.replace(default=f"{parameter.default:g}", annotation=str)


def read(body: Callable[..., Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags of ``body`` with their numbers as numbers.

    Raises:
        UsageError: if one is no number, is below 0, or is not finite.
    """
    parameters = inspect.signature(body).parameters
    return {
        name: _number(name, parameters[name], value) if is_number(parameters[name]) else value
        for name, value in flags.items()
    }


def _number(name: str, parameter: inspect.Parameter, text: str | float) -> float:
    whole = isinstance(parameter.default, int)
    try:
        number: float = int(text) if whole else float(text)
    except ValueError:
        number = -1
    if number >= 0 and math.isfinite(number) and not (whole and number > MOST):
        return number
    flag = "--" + name.replace("_", "-")
    limits = f"up to {MOST}" if whole and number > MOST else "of 0 or more"
    raise UsageError(
        problem=f"{flag} takes {'a whole number' if whole else 'a number'} {limits}, "
        f"not {str(text)!r}",
        way_out=f"Without it: {parameter.default:g}." if parameter.default else "",
    )
