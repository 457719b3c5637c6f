"""Reset GPUs, launch LLM servers over SSH, and prove what their workers really run with.

    >>> import eagleops
    >>> inventory = eagleops.load()
    >>> box = inventory.host("sim")

Names load when they are first used: importing eagleops is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from eagleops._version import __version__

if TYPE_CHECKING:
    from eagleops.errors import (
        CannotTell,
        CheckFailed,
        EagleError,
        Unreachable,
        UsageError,
    )
    from eagleops.library import Host, Library, Server, load
    from eagleops.library.compare import compare
    from eagleops.profile import Profile

_HOMES = {
    "CannotTell": "eagleops.errors",
    "CheckFailed": "eagleops.errors",
    "EagleError": "eagleops.errors",
    "Host": "eagleops.library",
    "Library": "eagleops.library",
    "Profile": "eagleops.profile",
    "Server": "eagleops.library",
    "Unreachable": "eagleops.errors",
    "UsageError": "eagleops.errors",
    "compare": "eagleops.library.compare",
    "load": "eagleops.library",
}

__all__ = [
    "CannotTell",
    "CheckFailed",
    "EagleError",
    "Host",
    "Library",
    "Profile",
    "Server",
    "Unreachable",
    "UsageError",
    "__version__",
    "compare",
    "load",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
