"""A GPU that has fallen off the bus is no GPU that was proved idle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_nothing_holds_while_a_gpu_is_lost(commands: Callable[..., Any]) -> None:
    """Reset, launch, doctor and status say so and end in 1; mended, all hold again."""
    commands.box.break_gpu(1, lost=True)

    reset = commands("reset-gpus", "--json")
    assert reset.exit_status == 1
    assert reset.document["drained"] is True  # the one that is left
    assert "a GPU is lost to the driver" in reset.document["lost"]
    launch = commands("launch")
    assert launch.exit_status == 1
    assert "nothing was launched" in launch.stderr
    assert "a GPU is lost to the driver" in launch.stderr
    doctor = commands("doctor", "--json").document
    assert {check["id"]: check["state"] for check in doctor["checks"]}["gpus"] == "fail"
    assert commands("status").exit_status == 1

    commands.box.mend()
    assert commands("reset-gpus").exit_status == 0
