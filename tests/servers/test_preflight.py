"""GPUs that are in use refuse a launch that needs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from servers.places import of_launches

CAPTURED = Path(__file__).parents[1] / "data/gpus/query-gpu-two-workers.csv"
SMI = """#!/bin/sh
case "$*" in *query-gpu*) cat "$(dirname "$0")/answer";; esac
"""
USED = {0: 387, 1: 21959}


@pytest.fixture
def on_gpus(place, tmp_path):
    """A session on a machine whose GPU 1 holds what was captured, and GPU 0 less."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(SMI)
    answer = CAPTURED.read_text().replace(f" {USED[1]},", f" {USED[0]},", 1)
    program.with_name("answer").write_text(answer)
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    return place.session(path=path, device_prefix=str(tmp_path / "nvidia"))


def test_gpus_in_use_refuse_a_launch(place, on_gpus) -> None:
    """Each is named with what it holds, and nothing is started."""
    launch = place.launch(["sleep", "600"], require_free_mib=100)

    with pytest.raises(OperationFailed) as refused:
        on_gpus.call("spawn", name="a", launch=launch)

    assert refused.value.kind == "gpu_busy"
    assert refused.value.problem == (
        "GPUs are in use (GPU 0: 387 MiB, GPU 1: 21959 MiB; up to 100 MiB count as idle) "
        "by nobody that can be seen from here"
    )
    assert refused.value.way_out == (
        "See who holds them (eagleops status) or free them (eagleops reset-gpus)."
    )
    assert refused.value.data["gpus"] == [
        {"index": index, "used_mib": used, "limit_mib": 100.0} for index, used in USED.items()
    ]
    assert not place.folder("a").exists()
    assert of_launches(place.launch_ids, place.state_home) == []


@pytest.mark.parametrize(
    ("limits", "env", "busy"),
    [
        (None, {}, []),
        (30_000, {}, []),
        (1000, {}, [1]),
        ({"0": 100, "1": 30_000}, {}, [0]),
        ({"1": 100}, {}, [1]),
        ({}, {}, []),
        (100, {"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        (100, {"CUDA_VISIBLE_DEVICES": "0, 1"}, [0, 1]),
        (100, {"CUDA_VISIBLE_DEVICES": ""}, []),
        (100, {"CUDA_VISIBLE_DEVICES": "GPU-00000000-0000-4000-8000-000000000001"}, [1]),
        (100, {"CUDA_VISIBLE_DEVICES": "GPU-0"}, [0, 1]),
    ],
)
def test_only_gpus_that_the_server_may_use_matter(place, on_gpus, limits, env, busy) -> None:
    """By its CUDA_VISIBLE_DEVICES, and by the limits: one for all, or one each."""
    launch = place.launch(["sleep", "600"], require_free_mib=limits, env=env)

    seen = []
    try:
        on_gpus.call("spawn", name="a", launch=launch)
    except OperationFailed as refused:
        seen = [gpu["index"] for gpu in refused.data["gpus"]]

    assert seen == busy


def test_a_machine_without_gpus_has_none_in_use(place, session) -> None:
    """A server on the CPU is launched as any other."""
    launch = place.launch(["sleep", "600"], require_free_mib=100)

    assert session.call("spawn", name="a", launch=launch)["server"]["state"] == "starting"
