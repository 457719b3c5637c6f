"""What the tests of engines share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eagleops.profile import Profile

DATA = Path(__file__).parents[1] / "data" / "engines"


@pytest.fixture
def log() -> Callable[[str], list[str]]:
    """The lines of a captured log."""
    return lambda name: (DATA / name).read_text(encoding="utf-8").split("\n")


@pytest.fixture
def profile() -> Callable[..., Profile]:
    """A profile of an engine that can be launched, with what the test says over it."""

    def make(engine: str, **values: Any) -> Profile:
        return Profile(
            **{
                "name": "p",
                "origin": "hosts.yaml:7",
                "engine": engine,
                "model": "/models/m",
                "port": 8000,
                **values,
            }
        )

    return make
