"""What a process is, from its title or its arguments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.engines import Role, engine
from eagleops.engines.roles import ranks_of, ranks_text

PYTHON = "/opt/env/bin/python3"
SPAWNED = [
    PYTHON,
    "-c",
    "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=29, pipe_handle=31)",
    "--multiprocessing-fork",
]
TRACKER = [PYTHON, "-B", "-c", "from multiprocessing.resource_tracker import main;main(29)"]
FORKSERVER = [PYTHON, "-c", "from multiprocessing.forkserver import main; main(5, 6, ['__main__'])"]

SGLANG = {
    "sglang::scheduler": Role("scheduler", None, computes=True),
    "sglang::scheduler_TP3": Role("scheduler", "TP3", computes=True),
    "sglang::scheduler_DP0_PP1_TP3_EP1": Role("scheduler", "DP0_PP1_TP3_EP1", computes=True),
    # 0.4.6 has the pipeline's rank last.
    "sglang::scheduler_DP0_TP3_PP1": Role("scheduler", "DP0_TP3_PP1", computes=True),
    "sglang::scheduler_PP0_ATTN_CP1_MOE_DP0_TP12": Role(
        "scheduler", "PP0_ATTN_CP1_MOE_DP0_TP12", computes=True
    ),
    "sglang::detokenizer": Role("detokenizer"),
    "sglang::detokenizer_router": Role("detokenizer_router"),
    "sglang::data_parallel_controller": Role("data_parallel_controller"),
    "sglang::tokenizer_worker:4711": Role("tokenizer_worker"),
    "sgl_diffusion::scheduler_1": Role("scheduler", "1", computes=True),
    # What setproctitle leaves of a longer command line is padding.
    "sglang::scheduler_TP0\0\0\0   ": Role("scheduler", "TP0", computes=True),
    "ray::SchedulerActor.run_event_loop": Role("scheduler", None, computes=True),
    "ray::IDLE": Role("ray"),
}
VLLM = {
    "VLLM::EngineCore": Role("engine_core", None, computes=True),
    "VLLM::EngineCore_DP1": Role("engine_core", "DP1", computes=True),
    "VLLM::Worker": Role("worker", None, computes=True),
    "VLLM::Worker_TP0": Role("worker", "TP0", computes=True),
    "VLLM::Worker_PP0_TP1_EP0": Role("worker", "PP0_TP1_EP0", computes=True),
    "VLLM::Worker_DP1_PP0_PCP0_TP1_DCP1_EP3": Role(
        "worker", "DP1_PP0_PCP0_TP1_DCP1_EP3", computes=True
    ),
    "VLLM::APIServer_0": Role("api_server", "0"),
    "VLLM::APIServer_DP0": Role("api_server", "DP0"),
    "VLLM::DPCoordinator": Role("dp_coordinator"),
    "my-team::Worker_TP1": Role("worker", "TP1", computes=True),
    "ray::RayWorkerWrapper.execute_method": Role("worker", None, computes=True),
    "ray::_StatsActor": Role("ray"),
}


@pytest.mark.parametrize("title", SGLANG)
def test_sglang_s_titles_are_read(title) -> None:
    """Of every version, with every dimension."""
    assert engine("sglang").role(title, [title]) == SGLANG[title]


@pytest.mark.parametrize("title", VLLM)
def test_vllm_s_titles_are_read(title) -> None:
    """Of every version, whatever VLLM_PROCESS_NAME_PREFIX says."""
    assert engine("vllm").role(title, [title]) == VLLM[title]


@pytest.mark.parametrize("name", ["sglang", "vllm", "command"])
@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (SPAWNED, Role("untitled")),
        (TRACKER, Role("resource_tracker")),
        (FORKSERVER, Role("forkserver")),
        (["numactl", "--cpunodebind=0", "--membind=0", *SPAWNED], Role("untitled")),
        (["/usr/bin/numactl", "--membind=0", "./server"], Role("wrapper")),
        (
            ["/bin/sh", "/tmp/sglang_temp_file_1733000000_4711.sh", "-c", "x"],
            Role("wrapper"),
        ),
        (
            [
                PYTHON,
                "/env/lib/python3.12/site-packages/torch/_inductor/compile_worker/__main__.py",
            ],
            Role("compile_worker"),
        ),
        (["/bin/bash", "-c", "sleep 1"], None),
        (["nvidia-smi"], None),
        ([""], None),
        ([], None),
    ],
)
def test_python_s_own_processes_are_known_in_every_engine(name, argv, expected) -> None:
    """Before a child has its title, its arguments tell what it is."""
    assert engine(name).role(" ".join(argv), argv) == expected


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("sglang", f"{PYTHON} -m sglang.launch_server --model-path /m --tp-size 8"),
        ("sglang", f"{PYTHON} /opt/env/bin/sglang serve --model-path /m"),
        ("sglang", f"{PYTHON} /src/sglang/launch_server.py --model-path /m"),
        ("vllm", f"{PYTHON} -m vllm.entrypoints.cli.main serve /m --port 8000"),
        ("vllm", f"{PYTHON} -m vllm.entrypoints.openai.api_server --model /m"),
        ("vllm", f"{PYTHON} /opt/env/bin/vllm serve /m"),
    ],
)
def test_the_main_process_is_known_by_its_command(name, command) -> None:
    """It sets no title."""
    assert engine(name).role(command, command.split()) == Role("server")


@pytest.mark.parametrize(
    "command",
    [
        "vim sglang::scheduler_TP0.log",
        "grep sglang::scheduler",
        "python3 -m sglang.bench_serving --port 8000",
        "tail -f sglang.launch_server.log",
        "/bin/bash -c while true; do pgrep sglang::scheduler; done",
    ],
)
def test_what_only_mentions_an_engine_is_none_of_it(command) -> None:
    """An editor, a grep or a benchmark is no worker."""
    assert engine("sglang").role(command, command.split()) is None


def test_a_rank_is_read_by_dimension() -> None:
    """Whatever the order in the title."""
    assert Role("scheduler", "DP0_ATTN_CP2_TP13").ranks == {"DP": 0, "ATTN_CP": 2, "TP": 13}
    assert Role("scheduler").ranks == {}


dimensions = st.sampled_from(["DP", "PP", "ATTN_CP", "MOE_DP", "TP", "EP"])


@given(st.dictionaries(dimensions, st.integers(0, 9999), min_size=1))
def test_any_rank_in_a_title_is_read_back(ranks) -> None:
    """Ranks, text, title and role agree."""
    text = ranks_text(ranks)
    title = f"sglang::scheduler_{text}"
    role = engine("sglang").role(title, [title])

    assert role is not None
    assert ranks_of(text) == ranks
    assert role.ranks == ranks


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=4))
def test_any_title_and_any_arguments_are_read_or_not_known(title, argv) -> None:
    """A hostile process name raises nothing."""
    for name in ("sglang", "vllm", "command"):
        role = engine(name).role(title, argv)
        assert role is None or isinstance(role, Role)
