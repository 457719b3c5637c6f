"""What the engines set by themselves, for whom, and in words."""

from __future__ import annotations

import pytest

from eagleops.engines import engine


def told(profile, name: str) -> list[str]:
    """What is said of one variable."""
    overrides = engine(profile.engine).overrides(profile)
    return [override.told("SGLang") for override in overrides if override.name == name]


def test_sglang_turns_cumem_and_nvls_off(profile) -> None:
    """Old versions whatever was set, new ones where nothing was."""
    made = profile("sglang")

    for name in ("NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE"):
        assert told(made, name) == [
            f"SGLang up to 0.5.4 sets {name}=0, whatever was set before",
            f"SGLang from 0.5.5 on sets {name}=0, if it is not set",
        ]


def test_what_only_fills_a_gap_is_no_word_about_a_profile_that_sets_it(profile) -> None:
    """What replaces the profile's value is."""
    made = profile("sglang", env={"NCCL_CUMEM_ENABLE": "1"})

    assert told(made, "NCCL_CUMEM_ENABLE") == [
        "SGLang up to 0.5.4 sets NCCL_CUMEM_ENABLE=0, whatever was set before"
    ]


@pytest.mark.parametrize(
    ("args", "name", "expected"),
    [
        (
            {"enable-symm-mem": True},
            "NCCL_CUMEM_ENABLE",
            "SGLang sets NCCL_CUMEM_ENABLE=1 with --enable-symm-mem, whatever was set before",
        ),
        (
            {"enable-nccl-nvls": True},
            "NCCL_NVLS_ENABLE",
            "SGLang sets NCCL_NVLS_ENABLE=1 with --enable-nccl-nvls, whatever was set before",
        ),
        (
            {"enable-deterministic-inference": True},
            "NCCL_ALGO",
            (
                "SGLang from 0.5.3 on sets NCCL_ALGO=allreduce:tree with "
                "--enable-deterministic-inference and several ranks, whatever was set before"
            ),
        ),
        (
            {"enable-deterministic-inference": True},
            "NCCL_MAX_NCHANNELS",
            (
                "SGLang 0.5.23 sets NCCL_MAX_NCHANNELS with --enable-deterministic-inference and "
                "several ranks, whatever was set before"
            ),
        ),
        (
            {"tp-size": 8},
            "NCCL_GRAPH_REGISTER",
            (
                "SGLang 0.5.23 sets NCCL_GRAPH_REGISTER=0 with several ranks and CUDA "
                "graphs, if it "
                "is not set"
            ),
        ),
        (
            {"enable-metrics": True},
            "PROMETHEUS_MULTIPROC_DIR",
            "SGLang sets PROMETHEUS_MULTIPROC_DIR with --enable-metrics, if it is not set",
        ),
    ],
)
def test_flags_bring_their_own_variables(profile, args, name, expected) -> None:
    """And without the flag nothing is said of them."""
    assert told(profile("sglang", args=args), name) == [expected]
    assert expected not in told(profile("sglang"), name)


def test_vllm_pins_nccl_for_batch_invariance(profile) -> None:
    """It replaces exactly what people tune."""
    made = profile("vllm", env={"VLLM_BATCH_INVARIANT": "1", "NCCL_PROTO": "LL"})

    forced = {o.name: o.value for o in engine("vllm").overrides(made) if o.forced}
    assert forced["NCCL_PROTO"] == "Simple"
    assert forced["NCCL_MAX_NCHANNELS"] == "1"
    assert "NCCL_PROTO" not in {o.name for o in engine("vllm").overrides(profile("vllm"))}


def test_a_command_sets_nothing_that_is_known(profile) -> None:
    """Nothing is known of it."""
    assert engine("command").overrides(profile("command", command=["x"])) == ()


@pytest.mark.parametrize("name", ["sglang", "vllm"])
def test_every_row_names_its_source(profile, name) -> None:
    """A fact without a source is a rumour."""
    everything = {
        "args": {
            "enable-symm-mem": True,
            "enable-deterministic-inference": True,
            "tp-size": 8,
            "nnodes": 2,
            "dcp-size": 2,
            "enable-eplb": True,
            "enable-sleep-mode": True,
            "data-parallel-size": 2,
        },
        "env": {"VLLM_BATCH_INVARIANT": "1"},
    }

    overrides = engine(name).overrides(profile(name, **everything))
    assert len(overrides) > 10
    assert [o.name for o in overrides if not o.source] == []
