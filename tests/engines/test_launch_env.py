"""The variables that a launch adds to the profile's."""

from __future__ import annotations

import pytest

from eagleops.engines import engine
from eagleops.errors import ProfileError

LOG = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV",
    "NCCL_DEBUG_FILE": "{state_dir}/nccl.%p.log",
}
NOENV = {"SPT_NOENV": "1"}

CASES = {
    "nothing set": ({}, True, {**NOENV, **LOG}),
    "without the log": ({}, False, NOENV),
    "the profile's own": (
        {"env": {"A": 1, "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/x.%p"}},
        True,
        {
            **NOENV,
            "A": "1",
            "NCCL_DEBUG": "WARN",
            "NCCL_DEBUG_SUBSYS": "INIT,ENV",
            "NCCL_DEBUG_FILE": "/x.%p",
        },
    ),
    "nulled": (
        {"unset": frozenset({"SPT_NOENV", "NCCL_DEBUG"})},
        True,
        {k: v for k, v in LOG.items() if k != "NCCL_DEBUG"},
    ),
    "inherited from the target": (
        {"inherit": ["NCCL_DEBUG_SUBSYS", "HF_TOKEN"]},
        True,
        {**NOENV, **{k: v for k, v in LOG.items() if k != "NCCL_DEBUG_SUBSYS"}},
    ),
    "some GPUs": (
        {"gpus": [2, 0]},
        False,
        {**NOENV, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,0"},
    ),
    "some GPUs, said twice": (
        {"gpus": [2, 0], "env": {"CUDA_VISIBLE_DEVICES": "2,0"}},
        False,
        {**NOENV, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2,0"},
    ),
}


@pytest.mark.parametrize("name", ["sglang", "vllm", "command"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_added_is_what_nobody_has_spoken_of(profile, name, case) -> None:
    """A profile's value, its null, and its inheritance come before eagleops'."""
    values, nccl_log, expected = CASES[case]

    assert engine(name).environment(profile(name, **values), nccl_log=nccl_log) == expected


def test_two_lists_of_gpus_that_differ_are_refused(profile) -> None:
    """One of them would be a lie."""
    made = profile("vllm", gpus=[0, 1], env={"CUDA_VISIBLE_DEVICES": "0"})

    with pytest.raises(ProfileError) as caught:
        engine("vllm").environment(made)

    assert str(caught.value) == (
        "hosts.yaml:7: profiles.p.env.CUDA_VISIBLE_DEVICES: contradicts gpus: 0 is not 0,1\n"
        "Say it once, as `gpus:`."
    )
