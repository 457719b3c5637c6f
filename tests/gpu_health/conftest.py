"""Fixtures: the embedded box as a machine, and what it tells of its health."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eagleops.inventory import HostEntry
from eagleops.machine import Machine
from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule
from eagleops.sim.box import SimBox
from eagleops.workflows.nightly.gpu_health import judge_health, read_health

Health = dict[str, Any]


@pytest.fixture
def box(tmp_path: Path) -> SimBox:
    """A box of four GPUs."""
    return SimBox.prepare(tmp_path / "box", gpus=4)


@pytest.fixture
def machine(box: SimBox) -> Iterator[Machine]:
    """The box as a machine."""
    entry = HostEntry(name="sim", transport="sim", python=sys.executable)
    made = Machine("sim", entry, box.transport(), box.options)
    yield made
    made.close()


@pytest.fixture
def health(machine: Machine) -> Callable[..., Health]:
    """``health(before)``: what the box tells now."""
    return lambda before=None: read_health(machine, before)


@pytest.fixture
def judged() -> Callable[..., dict[str, Finding]]:
    """``judged(told, before, idle=True, limits={"power": 20})``: the findings by their kind."""

    def judge(
        told: Health,
        before: Health | None = None,
        *,
        idle: bool = True,
        limits: dict[str, float] | None = None,
        severities: dict[str, Any] | None = None,
    ) -> dict[str, Finding]:
        def rule(kind: str) -> Rule:
            return Rule.of(
                kind,
                severity=(severities or {}).get(kind),
                limit=(limits or {}).get(kind),
            )

        return {f.id: f for f in judge_health("llm", told, before, rule, idle=idle)}

    return judge
