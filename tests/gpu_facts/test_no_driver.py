"""A machine without any GPU driver is not one whose driver does not answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from eagleops.errors import CannotTell
from eagleops.workflows.reset import reset
from eagleops.workflows.status import status


@pytest.fixture
def machine_of(open_session, tmp_path: Path) -> Callable[[bytes], SimpleNamespace]:
    """``machine_of(library)``: this machine, with that for NVML and without nvidia-smi."""

    def make(library: bytes) -> SimpleNamespace:
        folder = tmp_path / "driver"
        folder.mkdir()
        (folder / "libnvidia-ml.so.1").write_bytes(library)
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        session = open_session(nvml=True, path=str(folder), env=env)
        return SimpleNamespace(
            name="box",
            call=session.call,
            outer=None,
            container=None,
            entry=SimpleNamespace(idle_mib=64),
        )

    return make


def test_without_a_driver_there_is_nothing_to_see_and_nothing_to_free(machine_of) -> None:
    """Status tells why it shows no GPU, and ends well; so does a reset."""
    machine = machine_of(b"")

    seen, freed = status(machine), reset(machine)

    assert (seen.ok, seen.to_dict()["driver_found"], seen.to_dict()["gpus"]) == (True, False, [])
    assert seen.gpu_problem.endswith("no nvidia-smi on PATH")
    assert "libnvidia-ml.so.1 did not load" in seen.view().to_html()
    assert freed.ok


def test_a_driver_that_does_not_answer_is_a_fault(machine_of, empty_library) -> None:
    """Its GPUs may be there, and held: status ends with 1, and a reset cannot tell."""
    machine = machine_of(empty_library.read_bytes())

    seen = status(machine)

    assert (seen.ok, seen.to_dict()["driver_found"]) == (False, True)
    with pytest.raises(CannotTell, match="the GPUs cannot be read: Failed to initialize NVML"):
        reset(machine)
