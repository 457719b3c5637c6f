"""Fixtures: ``box`` (an embedded box of this test's own) and ``launch`` (a server on it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eagleops.sim.box import SimBox
from sim.simulated import SGLANG, SimServer


@pytest.fixture
def box(tmp_path: Path) -> SimBox:
    """A box in a folder with a blank in its name."""
    return SimBox.prepare(tmp_path / "a box")


@pytest.fixture
def launch(box: SimBox, tmp_path: Path) -> Iterator[Callable[..., SimServer]]:
    """``launch("--tp-size", "2", sim={...}, env={...}, ready=False)``; stopped after the test."""
    started: list[SimServer] = []

    def start(
        *flags: str, argv: tuple[str, ...] = SGLANG, ready: bool = True, **how: object
    ) -> SimServer:
        server = SimServer(box, tmp_path, (*argv, *flags), **how)
        started.append(server)
        return server.wait_ready() if ready else server

    yield start
    for server in started:
        server.stop()
