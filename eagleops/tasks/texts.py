"""Texts among a command's flags.

A shell variable that is not set arrives as an empty text. It must not be taken for a flag that was
left out: ``reset-gpus --host "$HOST"`` would then reset another machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagleops.errors import UsageError


def hold(flags: Mapping[str, Any]) -> None:
    """Makes sure that each text among ``flags`` says something.

    Raises:
        UsageError: if one is empty.
    """
    for name, value in flags.items():
        if "" in (value if isinstance(value, list) else [value]):
            flag = "--" + name.replace("_", "-")
            raise UsageError(
                problem=f"{flag} is given, and is empty",
                way_out="A variable of the shell that is not set? Name one, or leave the flag out.",
            )
