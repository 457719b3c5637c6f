"""Doctor's verdicts on a GPU machine's own traps."""

from __future__ import annotations

from typing import Any

import pytest

from eagleops.workflows.box_checks import judge_box

SOUND: dict[str, Any] = {
    "persistence": ["Enabled"] * 8,
    "acs": {"bridges": 4, "redirecting": []},
    "gpu_iommu": ["identity"] * 8,
    "thp": "madvise",
    "numa_balancing": 0,
    "numa_nodes": 2,
    "control_devices": {"ctl": "ok", "-uvm": "ok"},
    "tmp_noexec": False,
    "paths": [{"path": "/m", "there": True, "free_mib": 5000}],
}


def checks(nofile: int = 65536, memlock: int = -1, gpus: int = 8, **changes: Any) -> dict:
    """The verdicts by name: state and message."""
    found = judge_box({**SOUND, **changes}, nofile=nofile, memlock=memlock, gpus=gpus)
    return {check.id: (check.state, check.message) for check in found}


def test_a_sound_machine_passes_every_check() -> None:
    """And each check is there."""
    found = checks()

    assert {state for state, _ in found.values()} == {"pass"}
    assert list(found) == [
        "persistence", "p2p", "ulimits", "numa", "hugepages", "device-files", "model",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes", "state", "said"),
    [
        ("persistence", {"persistence": ["Disabled", None]}, "warn", "off on 1 of 1 GPUs"),
        ("p2p", {"gpu_iommu": ["DMA-FQ"] * 8}, "warn", "translates for 8 GPUs (DMA-FQ)"),
        (
            "p2p",
            {"acs": {"bridges": 4, "redirecting": ["0000:00:01.0"]}},
            "warn",
            "on 1 of 4 bridges (0000:00:01.0)",
        ),
        ("p2p", {"acs": None}, "pass", "for root on the host to read"),
        ("ulimits", {"nofile": 1024}, "warn", "1024 open files"),
        ("ulimits", {"memlock": 65536}, "warn", "64 KiB of locked memory"),
        ("numa", {"numa_balancing": 1}, "warn", "is 1 on 2 nodes"),
        ("hugepages", {"thp": "never"}, "warn", "never"),
        (
            "device-files",
            {"control_devices": {"ctl": "ok", "-uvm": "operation not permitted"}},
            "fail",
            "/dev/nvidia-uvm: operation not permitted",
        ),
        (
            "device-files",
            {"control_devices": {"ctl": "ok", "-uvm": "absent"}},
            "warn",
            "nvidia-modprobe -u",
        ),
        ("tmp", {"tmp_noexec": True}, "warn", "mounted noexec"),
        (
            "model",
            {"paths": [{"path": "/m", "there": False, "free_mib": 9}]},
            "warn",
            "there is no /m",
        ),
    ],
)
def test_a_trap_is_named_with_its_way_out(name, changes, state, said) -> None:
    """The message says what was seen."""
    seen = checks(**changes)[name]

    assert seen[0] == state
    assert said in seen[1]


def test_one_gpu_has_no_peer_to_reach() -> None:
    """What stands between GPUs is told of several alone."""
    assert "p2p" not in checks(gpus=1, gpu_iommu=["DMA"])


def test_what_could_not_be_read_is_left_out() -> None:
    """Nothing is made of it."""
    found = checks(persistence=[], thp=None, numa_nodes=None, gpus=0, paths=[])

    assert list(found) == ["ulimits"]
