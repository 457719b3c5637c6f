"""What the stand-in SGLang refuses, and how it fails when it is told to."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import pytest

from eagleops.sim.box import SimBox
from parts.poll import until
from sim.simulated import EAGLE3, SGLANG, SimServer

BARE = SGLANG[:2]


def test_an_unknown_flag_ends_with_status_2(launch: Callable[..., SimServer]) -> None:
    """Argparse's words, as the real one's."""
    server = launch("--enable-warp-drive", ready=False)

    assert server.wait_ended() == 2
    assert "launch_server.py: error: unrecognized arguments: --enable-warp-drive" in server.log


def test_a_missing_model_ends_with_status_2(launch: Callable[..., SimServer]) -> None:
    """It is the one flag that must be there."""
    server = launch(argv=BARE, ready=False)

    assert server.wait_ended() == 2
    assert "the following arguments are required: --model-path/--model" in server.log


def test_a_bad_combination_is_an_exception(launch: Callable[..., SimServer]) -> None:
    """Top-k without steps: a bare AssertionError, status 1."""
    server = launch(
        "--speculative-algorithm", "EAGLE3", "--speculative-eagle-topk", "1", ready=False
    )

    assert server.wait_ended() == 1
    assert "AssertionError" in server.log


def test_the_help_lists_every_flag(launch: Callable[..., SimServer]) -> None:
    """So that a command line can be checked against the installed engine."""
    server = launch("--help", ready=False)

    assert server.wait_ended() == 0
    for flag in ("--speculative-num-steps", "--tp-size", "--disable-custom-all-reduce"):
        assert flag in server.log


def test_a_section_that_cannot_be_followed_ends_the_start(
    launch: Callable[..., SimServer],
) -> None:
    """The sentence of the settings."""
    server = launch(*EAGLE3, ready=False, sim={"accept_length": 4})

    assert server.wait_ended() == 1
    assert "`sim: accept_length` of 4 is more than the 3 tokens" in server.log


FAILURES = {
    "exit": (1, "does not appear to have a file named config.json"),
    "import": (-9, "ModuleNotFoundError: No module named 'deep_gemm'"),
    "killed": (1, "Rank 0 scheduler died during initialization (exit code: -9)"),
    "memory": (
        -9,
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    ),
    "nccl": (-9, "ncclUnhandledCudaError: Call to CUDA function failed."),
    "oom": (-9, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"),
    "port": (3, "[Errno 98] error while attempting to bind on address ('127.0.0.1', "),
    "segv": (-signal.SIGSEGV, "Fatal Python error: Segmentation fault"),
    "warmup": (-9, "Initialization failed. warmup error: Traceback"),
    "crash": (-9, "Subprocess scheduler_0 (pid="),
}


@pytest.mark.parametrize("fail", FAILURES)
def test_it_fails_in_the_real_ones_words(launch: Callable[..., SimServer], fail: str) -> None:
    """The exit status, and the cause in the log; no process is left."""
    status, words = FAILURES[fail]

    server = launch("--tp-size", "2", ready=False, sim={"fail": fail, "after_s": 0.1})

    assert server.wait_ended() == status
    assert words in server.log


@pytest.mark.parametrize("fail", ["import", "memory", "nccl", "oom"])
def test_a_workers_exception_is_told_as_the_real_one_tells_it(
    launch: Callable[..., SimServer], fail: str
) -> None:
    """Its traceback, then the parent's word on SIGQUIT, then the end of the tree."""
    server = launch("--tp-size", "2", ready=False, sim={"fail": fail, "fail_rank": 1})
    server.wait_ended()

    log = server.log
    milestones = (
        "TP1] Scheduler hit an exception: Traceback (most recent call last):",
        "Received sigquit from a child process. It usually means the child failed.",
        "kill_process_tree called: parent_pid=",
    )
    places = [log.index(milestone) for milestone in milestones]
    assert places == sorted(places)


def test_a_hang_stays_alive_and_silent(launch: Callable[..., SimServer]) -> None:
    """The last line is NCCL's, the port stays closed, the processes wait."""
    server = launch("--tp-size", "2", ready=False, sim={"fail": "hang"})
    until(lambda: "sglang is using nccl==2.28.9" in server.log)

    assert server.process.poll() is None
    assert server.get("/health")[0] == 0
    assert "Init torch distributed ends." not in server.log


def test_an_unhealthy_server_says_503(launch: Callable[..., SimServer]) -> None:
    """After it was ready; everything else answers on."""
    server = launch(sim={"fail": "unhealthy", "after_s": 3.0})

    until(lambda: server.get("/health")[0] == 503)
    assert server.get("/model_info")[0] == 200


def test_a_stalled_reply_comes_to_no_end(launch: Callable[..., SimServer]) -> None:
    """Half of its tokens come, then none; the server lives."""
    server = launch(sim={"fail": "stall", "tok_s": 1000, "ttft_ms": 1})
    stream = server.events("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 20}})

    for _ in range(11):
        next(stream)

    assert server.get("/health")[0] == 200
    assert server.process.poll() is None


def test_the_first_completion_can_kill_it(launch: Callable[..., SimServer]) -> None:
    """Ready, and it cannot serve: seen on real engines."""
    server = launch(sim={"fail": "serve"})

    server._request("POST", "/generate", '{"text": "a"}')

    assert server.wait_ended() == -signal.SIGKILL
    assert "Subprocess scheduler_0" in server.log


def test_a_taken_port_shows_at_the_very_end(launch: Callable[..., SimServer]) -> None:
    """With uvicorn's words and exit status 3, and only after the whole load."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        server = launch(ready=False, port=other.getsockname()[1])

        assert server.wait_ended() == 3
    assert "address already in use" in server.log
    assert server.log.index("Application startup complete.") < server.log.index("[Errno 98]")


def test_more_ranks_than_gpus_fail(launch: Callable[..., SimServer]) -> None:
    """CUDA has no such device."""
    server = launch("--tp-size", "2", ready=False, env={"CUDA_VISIBLE_DEVICES": "5"})

    assert server.wait_ended() == -signal.SIGKILL
    assert "CUDA error: invalid device ordinal" in server.log


def test_gpus_that_others_hold_fail_the_load(launch: Callable[..., SimServer], box: SimBox) -> None:
    """A second server on the same GPUs finds no memory; the first lives on."""
    first = launch("--tp-size", "2")
    second = launch("--tp-size", "2", ready=False)

    assert second.wait_ended() == -signal.SIGKILL
    assert "CUDA out of memory" in second.log
    assert first.get("/health")[0] == 200
    until(lambda: [len(gpu.processes) for gpu in box.read_gpus()][:2] == [1, 1])


def test_one_gpu_that_is_held_makes_memory_unbalanced(
    launch: Callable[..., SimServer], box: SimBox
) -> None:
    """The rank on a free GPU sees that another's has much less."""
    box.break_gpu(1, foreign_mib=30_000)

    server = launch("--tp-size", "2", ready=False)

    assert server.wait_ended() == -signal.SIGKILL
    assert (
        "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied" in server.log
    )
