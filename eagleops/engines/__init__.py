"""Engines: how each is started, seen and understood. One adapter each, all of them pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from eagleops.engines.base import Engine
from eagleops.engines.command import Command
from eagleops.engines.failures import Cause
from eagleops.engines.overrides import Override
from eagleops.engines.preview import preview
from eagleops.engines.roles import Role
from eagleops.engines.sglang import SGLang
from eagleops.engines.vllm import VLLM
from eagleops.engines.workers import ExpectedWorker, ExpectedWorkers
from eagleops.errors import ProfileError

ENGINES: Mapping[str, Engine] = {adapter.name: adapter for adapter in (SGLang(), VLLM(), Command())}

__all__ = [
    "ENGINES",
    "Cause",
    "Engine",
    "ExpectedWorker",
    "ExpectedWorkers",
    "Override",
    "Role",
    "engine",
    "preview",
]


def engine(name: str) -> Engine:
    """The adapter of that name.

    Raises:
        ProfileError: if there is none.
    """
    if name in ENGINES:
        return ENGINES[name]
    near = difflib.get_close_matches(name, ENGINES, n=1)
    raise ProfileError(
        problem=f"there is no engine {name!r}" if name else "no engine is named",
        way_out=f"Did you mean {near[0]}?" if near else f"It is one of {', '.join(ENGINES)}.",
    )
