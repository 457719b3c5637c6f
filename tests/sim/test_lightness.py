"""The box's processes are many and start often: they carry nothing that they need not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from eagleops.sim.box import SimBox

HEAVY = {"attrs", "attr", "rich", "structlog", "yaml", "fabric", "paramiko", "invoke", "requests"}
WORKERS = "from eagleops.sim.sglang import scheduler; from eagleops.sim.vllm import worker"
SMI = "from eagleops.sim.nvidia_smi import main"


def imported(box: SimBox, program: str) -> set[str]:
    """The modules that a program of the box has loaded."""
    whole = f"import sys; sys.path.insert(0, sys.argv[1]); {program}; print(*sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-c", whole, box.environment["PYTHONPATH"]],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(shown.stdout.split())


@pytest.mark.parametrize("program", [WORKERS, SMI])
def test_a_process_of_the_box_imports_the_standard_library_alone(box: SimBox, program: str) -> None:
    """Besides the simulated parts themselves; and of eagleops, nothing but those."""
    modules = imported(box, program)

    own = {name for name in modules if name.startswith("eagleops.")}
    assert modules & HEAVY == set()
    assert {name for name in own if not name.startswith("eagleops.sim")} == set()


def test_workers_bring_no_http_server_along(box: SimBox) -> None:
    """Eight of them start at once, on two cores."""
    assert not {"http.server", "argparse", "email"} & imported(box, WORKERS)
