"""Which processes a profile must bring up, and which of them are missing."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.engines import ExpectedWorkers, Role, engine
from eagleops.errors import ProfileError


def titles(profile) -> list[str]:
    """The titles of the processes that a profile expects."""
    return [worker.title for worker in engine(profile.engine).expected_workers(profile).workers]


SGLANG = {
    "one GPU": ({}, ["sglang::scheduler", "sglang::detokenizer"]),
    "tensor parallel": (
        {"tp-size": 2},
        ["sglang::scheduler_TP0", "sglang::scheduler_TP1", "sglang::detokenizer"],
    ),
    "by its other names": (
        {"tensor-parallel-size": 2, "pp": 1},
        ["sglang::scheduler_TP0", "sglang::scheduler_TP1", "sglang::detokenizer"],
    ),
    "by its beginning": (
        {"tp": 2},
        ["sglang::scheduler_TP0", "sglang::scheduler_TP1", "sglang::detokenizer"],
    ),
    "pipeline and tensor parallel": (
        {"tp-size": 2, "pp-size": 2},
        [
            "sglang::scheduler_PP0_TP0",
            "sglang::scheduler_PP0_TP1",
            "sglang::scheduler_PP1_TP0",
            "sglang::scheduler_PP1_TP1",
            "sglang::detokenizer",
        ],
    ),
    "data parallel": (
        {"dp-size": 2},
        [
            "sglang::scheduler_DP0",
            "sglang::scheduler_DP1",
            "sglang::data_parallel_controller",
            "sglang::detokenizer",
        ],
    ),
    "data-parallel attention": (
        {"dp-size": 2, "tp-size": 2, "enable-dp-attention": True},
        [
            "sglang::scheduler_TP0",
            "sglang::scheduler_TP1",
            "sglang::data_parallel_controller",
            "sglang::detokenizer",
        ],
    ),
    "the second of two nodes": (
        {"tp-size": 4, "nnodes": 2, "node-rank": 1},
        ["sglang::scheduler_TP2", "sglang::scheduler_TP3"],
    ),
    "a pipeline over two nodes": (
        {"tp-size": 2, "pp-size": 2, "nnodes": 2, "node-rank": 1},
        ["sglang::scheduler_PP1_TP0", "sglang::scheduler_PP1_TP1"],
    ),
    "several tokenizers": (
        {"tokenizer-worker-num": 2, "detokenizer-worker-num": 2},
        [
            "sglang::scheduler",
            "sglang::detokenizer",
            "sglang::detokenizer",
            "sglang::detokenizer_router",
            "sglang::tokenizer_worker",
            "sglang::tokenizer_worker",
        ],
    ),
    "no HTTP of Python's": ({"grpc-mode": True}, ["sglang::scheduler"]),
    "Ray": ({"tp-size": 8, "use-ray": True}, []),
}
VLLM = {
    "one GPU": ({}, ["VLLM::EngineCore"]),
    "tensor parallel": (
        {"tensor-parallel-size": 2},
        ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"],
    ),
    "by its short name": (
        {"-tp": 2},
        ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"],
    ),
    "with underscores": (
        {"tensor_parallel_size": 2},
        ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"],
    ),
    "pipeline and tensor parallel": (
        {"-pp": 2, "-tp": 2},
        [
            "VLLM::EngineCore",
            "VLLM::Worker_PP0_TP0",
            "VLLM::Worker_PP0_TP1",
            "VLLM::Worker_PP1_TP0",
            "VLLM::Worker_PP1_TP1",
        ],
    ),
    "data parallel": (
        {"-dp": 2, "-tp": 2},
        [
            "VLLM::EngineCore_DP0",
            "VLLM::EngineCore_DP1",
            "VLLM::Worker_DP0_TP0",
            "VLLM::Worker_DP0_TP1",
            "VLLM::Worker_DP1_TP0",
            "VLLM::Worker_DP1_TP1",
        ],
    ),
    "one data-parallel rank of a node": (
        {"-dp": 4, "data-parallel-size-local": 1, "data-parallel-start-rank": 2},
        ["VLLM::EngineCore_DP2"],
    ),
    "a data-parallel rank by number": (
        {"-dp": 4, "data-parallel-rank": 3},
        ["VLLM::EngineCore_DP3"],
    ),
    "the second of two nodes": (
        {"-tp": 4, "nnodes": 2, "node-rank": 1, "headless": True},
        ["VLLM::Worker_TP2", "VLLM::Worker_TP3"],
    ),
    "several API servers": (
        {"api-server-count": 2},
        ["VLLM::EngineCore", "VLLM::APIServer_0", "VLLM::APIServer_1"],
    ),
    "Ray": ({"-tp": 8, "distributed-executor-backend": "ray"}, ["VLLM::EngineCore"]),
}


@pytest.mark.parametrize("case", SGLANG)
def test_sglang_brings_up_a_scheduler_for_each_rank(profile, case) -> None:
    """And what stands around them."""
    args, expected = SGLANG[case]

    assert titles(profile("sglang", args=args)) == expected


@pytest.mark.parametrize("case", VLLM)
def test_vllm_brings_up_an_engine_core_and_its_workers(profile, case) -> None:
    """With one GPU the engine core is its own worker."""
    args, expected = VLLM[case]

    assert titles(profile("vllm", args=args)) == expected


def test_a_command_brings_up_nothing_that_is_known(profile) -> None:
    """So nothing of it can be missing."""
    assert titles(profile("command", command=["x"])) == []


def test_what_ray_starts_is_told(profile) -> None:
    """The note says why workers are not looked for."""
    expected = engine("sglang").expected_workers(profile("sglang", args={"use-ray": True}))

    assert expected.note == "Ray starts the schedulers, outside the server's tree"


def test_a_size_that_is_no_number_is_refused(profile) -> None:
    """Before anything is started."""
    with pytest.raises(ProfileError) as caught:
        titles(profile("sglang", args={"tp-size": "eight"}))

    assert (
        str(caught.value) == "hosts.yaml:7: profiles.p.args.tp-size: expected a number, got eight"
    )


def test_two_names_of_one_size_that_differ_are_refused(profile) -> None:
    """Which of them wins is the engine's secret."""
    with pytest.raises(ProfileError) as caught:
        titles(profile("sglang", args={"tp-size": 8, "tp": 4}))

    assert str(caught.value) == (
        "hosts.yaml:7: profiles.p.args.tp: contradicts args.tp-size: both are names of one flag, "
        "with 8 and 4\nKeep one of them; null removes an inherited one."
    )


def missing(profile, *found: str) -> list[str]:
    """The titles that are missing from a server with these."""
    adapter = engine(profile.engine)
    roles = [adapter.role(title, title.split()) for title in found]
    expected = adapter.expected_workers(profile)
    return [w.title for w in expected.missing([role for role in roles if role])]


def test_a_worker_that_is_not_there_is_named(profile) -> None:
    """By the title it would have."""
    made = profile("sglang", args={"tp-size": 3})

    assert missing(made, "sglang::scheduler_TP0", "sglang::scheduler_TP2") == [
        "sglang::scheduler_TP1",
        "sglang::detokenizer",
    ]


def test_a_title_may_name_more_than_is_expected(profile) -> None:
    """What an engine adds to its titles changes by version."""
    made = profile("sglang", args={"tp-size": 2, "ep-size": 2})

    found = ["sglang::scheduler_TP0_EP0", "sglang::scheduler_TP1_EP1", "sglang::detokenizer"]
    assert missing(made, *found) == []


def test_an_older_vllm_does_not_name_the_data_parallel_rank(profile) -> None:
    """Two workers of the same title stand for two."""
    made = profile("vllm", args={"-dp": 2, "-tp": 2})
    cores = ["VLLM::EngineCore_DP0", "VLLM::EngineCore_DP1"]

    workers = ["VLLM::Worker_TP0", "VLLM::Worker_TP1"]
    assert missing(made, *cores, *workers, *workers) == []
    assert missing(made, *cores, *workers, "VLLM::Worker_TP0") == ["VLLM::Worker_DP1_TP1"]


def test_one_process_stands_for_one_worker(profile) -> None:
    """Three processes of one rank are no three ranks."""
    made = profile("vllm", args={"-tp": 2})

    found = ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP0"]
    assert missing(made, *found) == ["VLLM::Worker_TP1"]


def test_a_child_without_a_title_fills_a_gap(profile) -> None:
    """Where the setproctitle package is not installed, no worker has one."""
    made = profile("sglang", args={"tp-size": 2})
    spawned = "python3 -c from multiprocessing.spawn import spawn_main; spawn_main()"

    assert missing(made, spawned, spawned, spawned) == []
    assert len(missing(made, spawned, spawned)) == 1


def test_expectations_survive_the_record_of_a_server(profile) -> None:
    """As JSON in the state folder, and back."""
    expected = engine("sglang").expected_workers(profile("sglang", args={"tp-size": 2}))

    assert ExpectedWorkers.from_dict(expected.to_dict()) == expected
    assert ExpectedWorkers.from_dict({}) == ExpectedWorkers()
    assert expected.count("scheduler") == 2


sizes = st.integers(1, 4)


@given(tp=sizes, pp=sizes, dp=sizes, nodes=st.sampled_from([1, 2]))
def test_all_nodes_of_sglang_together_have_each_rank_once(profile, tp, pp, dp, nodes) -> None:
    """No rank is expected twice, none is forgotten."""
    args = {"tp-size": tp * 2, "pp-size": pp * 2, "dp-size": dp, "nnodes": nodes}
    found = [
        worker.title
        for node in range(nodes)
        for worker in engine("sglang")
        .expected_workers(profile("sglang", args={**args, "node-rank": node}))
        .workers
        if worker.role == "scheduler"
    ]

    assert len(found) == tp * 2 * pp * 2 * dp
    assert max(Counter(found).values()) == 1


@given(tp=sizes, pp=sizes, nodes=st.sampled_from([1, 2]))
def test_all_nodes_of_vllm_together_have_each_rank_once(profile, tp, pp, nodes) -> None:
    """No rank is expected twice, none is forgotten."""
    args = {"-tp": tp * 2, "-pp": pp, "nnodes": nodes}
    found = [
        worker.title
        for node in range(nodes)
        for worker in engine("vllm")
        .expected_workers(profile("vllm", args={**args, "node-rank": node}))
        .workers
        if worker.role == "worker"
    ]

    assert len(found) == tp * 2 * pp
    assert max(Counter(found).values()) == 1


@given(tp=sizes, dp=sizes, gone=st.integers(0, 30))
def test_of_a_whole_server_nothing_is_missing_and_of_a_broken_one_something(
    profile, tp, dp, gone
) -> None:
    """Each worker that goes is missed, alone."""
    expected = engine("sglang").expected_workers(
        profile("sglang", args={"tp-size": tp, "dp-size": dp})
    )
    found = [Role(worker.role, worker.rank) for worker in expected.workers]
    index = gone % len(found)

    assert expected.missing(found) == ()
    assert expected.missing(found[:index] + found[index + 1 :]) == (expected.workers[index],)
