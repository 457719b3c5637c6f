"""The engines by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from eagleops.engines.base import Engine
from eagleops.engines.command import Command
from eagleops.engines.sglang import SGLang
from eagleops.engines.vllm import VLLM
from eagleops.errors import ProfileError

ENGINES: Mapping[str, Engine] = {adapter.name: adapter for adapter in (SGLang(), VLLM(), Command())}


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
