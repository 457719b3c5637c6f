"""The team's symptom, to the letter: what /proc/PID/environ of a worker shows, and hides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sim.simulated import VLLM, SimServer

# The variables that they had set, in front of what the engine sets itself.
TUNING = {
    "NCCL_PROTO": "LL",
    "NCCL_ALGO": "Ring",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MAX_NCHANNELS": "16",
    "NCCL_BUFFSIZE": "16777216",
    "NCCL_NTHREADS": "512",
}


def initial(pid: int) -> tuple[int, dict[str, str]]:
    """Leading zero bytes of /proc/PID/environ, and the variables in it."""
    block = Path(f"/proc/{pid}/environ").read_bytes()
    rest = block.lstrip(b"\0")
    variables = [entry.decode().partition("=") for entry in rest.split(b"\0") if b"=" in entry]
    return len(block) - len(rest), {name: value for name, _, value in variables}


@pytest.mark.parametrize("name", ["sglang::scheduler_TP1", "sglang::detokenizer"])
def test_a_workers_initial_environment_is_overwritten(
    launch: Callable[..., SimServer], name: str
) -> None:
    """Zero bytes first; then what SGLang set, and nothing of what the user had set."""
    server = launch("--tp-size", "2", env=TUNING)

    zeros, variables = initial(server.worker(name))

    assert zeros > 200
    assert not set(variables) & set(TUNING)
    assert {
        "NCCL_CUMEM_ENABLE": "0",
        "NCCL_NVLS_ENABLE": "0",
        "CUDA_DEVICE_MAX_CONNECTIONS": "8",
        "CUDA_MODULE_LOADING": "AUTO",
    }.items() <= variables.items()
    assert variables["SGLANG_RUN_ID"].startswith("sglang-run-")


def test_with_spt_noenv_it_is_whole(launch: Callable[..., SimServer]) -> None:
    """The title fits into argv, and every variable can be read."""
    server = launch("--tp-size", "2", env={**TUNING, "SPT_NOENV": "1"})

    zeros, variables = initial(server.worker("sglang::scheduler_TP0"))

    assert zeros == 0
    assert TUNING.items() <= variables.items()
    assert variables["NCCL_CUMEM_ENABLE"] == "0"


def test_the_main_process_keeps_its_own(launch: Callable[..., SimServer]) -> None:
    """It takes no title; its block holds what exec gave, not what SGLang set since."""
    server = launch(env=TUNING)

    zeros, variables = initial(server.pid)

    assert zeros == 0
    assert TUNING.items() <= variables.items()
    assert "SGLANG_RUN_ID" not in variables


def test_what_the_user_set_for_nccl_is_kept(launch: Callable[..., SimServer]) -> None:
    """SGLang sets NCCL_CUMEM_ENABLE and NCCL_NVLS_ENABLE only where nobody has."""
    environment = {"NCCL_CUMEM_ENABLE": "1", "SPT_NOENV": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "4"}
    server = launch("--enable-nccl-nvls", env=environment)

    _, variables = initial(server.worker("sglang::scheduler"))

    assert variables["NCCL_CUMEM_ENABLE"] == "1"
    assert variables["NCCL_NVLS_ENABLE"] == "1"
    assert variables["CUDA_DEVICE_MAX_CONNECTIONS"] == "8"


@pytest.mark.parametrize("name", ["VLLM::EngineCore", "VLLM::Worker_TP0"])
def test_vllm_shows_the_same_picture(launch: Callable[..., SimServer], name: str) -> None:
    """Its processes hold only variables that the engine set itself."""
    server = launch("-tp", "2", argv=VLLM, env=TUNING)

    zeros, variables = initial(server.worker(name))

    assert zeros > 200
    assert not set(variables) & set(TUNING)
    assert variables["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    assert variables["LOCAL_WORLD_SIZE"] == "2"
