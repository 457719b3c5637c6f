"""Fixtures: places with a box, and the command line, as the main job's tests have them.

``served(way, ...)`` launches a server there and gives its :class:`Served`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from eagleops.machine import Machine
from eagleops.sim.box import SimBox
from eagleops.workflows.bench import Settings, bench
from eagleops.workflows.bench_result import BenchResult
from eagleops.workflows.launch import launch
from main_job.conftest import Place, commands, make_place

__all__ = ["commands", "make_place"]

EAGLE3 = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "/shared/drafter",
    "speculative-num-steps": 2,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 3,
}


@attrs.frozen
class Served:
    """A server that was launched."""

    place: Place

    @property
    def machine(self) -> Machine:
        return self.place.machine

    @property
    def box(self) -> SimBox:
        return self.place.box

    def bench(self, *, runs: int = 1, tokens: int = 40, **more: Any) -> BenchResult:
        """A bench of it; short, for what is not about time."""
        settings = Settings(runs=runs, tokens=tokens, warmups=more.pop("warmups", 0))
        stall_s = more.pop("stall_s", 10.0)
        return bench(self.machine, "baseline", attrs.evolve(settings, stall_s=stall_s), **more)


Serve = Callable[..., Served]


@pytest.fixture
def served(make_place) -> Serve:
    """Launches a server on a place of its own."""

    def serve(
        way: str = "local",
        *,
        engine: str = "sglang",
        args: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        **sim: Any,
    ) -> Served:
        place = make_place(way, **sim)
        given = {**place.profile.args, **(args or {})}
        if engine == "vllm":
            given = {"host": "127.0.0.1", "tensor-parallel-size": 2, **(args or {})}
        profile = attrs.evolve(
            place.profile, engine=engine, args=given, env={**place.profile.env, **(env or {})}
        )
        place = attrs.evolve(place, profile=profile)
        launch(place.machine, profile, verify_after=False)
        return Served(place)

    return serve
