"""The worker processes of the stand-in SGLang: one scheduler a GPU, and the detokenizer.

They do what can be seen from outside: they take their titles, hold their device files and
their memory, make an NCCL communicator, write the log's lines, and wait. Tokens come from
the main process's clock.
"""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection
from typing import NamedTuple

from eagleops.sim import engine
from eagleops.sim.gpus import bus_id
from eagleops.sim.holders import Grip
from eagleops.sim.layout import Layout
from eagleops.sim.memory import CONTEXT_MIB, Plan, free_mib
from eagleops.sim.nccl.communicator import VERSION as NCCL_VERSION
from eagleops.sim.nccl.communicator import Rank, first_all_reduce
from eagleops.sim.nccl.variables import NcclError
from eagleops.sim.settings import Settings
from eagleops.sim.sglang import trouble
from eagleops.sim.sglang.environment import SET_AGAIN
from eagleops.sim.sglang.log import Log, rank_tag


class Job(NamedTuple):
    """What a scheduler is told when it is started.

    Attributes:
        gpus: The box's GPUs, by rank.
        began_s: When the main process started, by :func:`time.monotonic`.
        speculative: Whether there is a draft model.
    """

    rank: int
    ranks: int
    gpus: tuple[int, ...]
    layout: Layout
    settings: Settings
    plan: Plan
    main: int
    began_s: float
    comm_id: int
    speculative: bool
    check_balance: bool


def run_detokenizer(main: int, settings: Settings) -> None:
    """The detokenizer's process: it has a title, and waits."""
    if settings.orphans is not True:
        engine.die_with_parent(main)
    engine.take_title("sglang::detokenizer", SET_AGAIN)
    _wait()


def run_scheduler(job: Job, ready: Connection) -> None:
    """A scheduler's process.

    Args:
        job: What it is to do.
        ready: Gets a word when it is ready; closed without one when it failed.
    """
    if job.settings.orphans is not True:
        engine.die_with_parent(job.main)
    suffix = f"_TP{job.rank}" if job.ranks > 1 else ""
    engine.take_title(f"sglang::scheduler{suffix}", SET_AGAIN)
    log = Log(rank_tag(job.rank, job.ranks))
    try:
        _start(job, log)
    except trouble.Trouble as error:
        log(f"Scheduler hit an exception: {error.traceback()}")
        os.kill(job.main, signal.SIGQUIT)
        return
    ready.send("ready")
    _wait()


def _wait() -> None:
    while True:
        signal.pause()


def _until(job: Job, share: float) -> None:
    """Waits until that share of the start-up time is over."""
    due_s = job.began_s + engine.scaled(job.settings.start_s, job.settings) * share
    time.sleep(max(0.0, due_s - time.monotonic()))


def _start(job: Job, log: Log) -> None:
    fails = job.settings.fail if job.rank == job.settings.fail_rank else ""
    if job.rank >= len(job.gpus):
        raise trouble.no_such_device()
    gpu = job.gpus[job.rank]
    _until(job, 0.35)
    log("Init torch distributed begin.")
    free = free_mib(job.layout, job.main)
    grip = Grip(job.layout, gpu, job.main)
    grip.hold(64)
    _communicate(job, log, gpu, fails)
    grip.hold(CONTEXT_MIB)
    log("Init torch distributed ends. elapsed=0.08 s, mem usage=0.58 GB")
    _check_balance(job, [free[other] for other in job.gpus[: job.ranks]], free[gpu])
    _load(job, log, grip, gpu, free[gpu], fails)


def _check_balance(job: Job, free: list[int], own_mib: int) -> None:
    """Refuses a group in which a GPU has much less free memory than another."""
    if job.check_balance:
        if min(free) < own_mib * 0.9:
            raise trouble.unbalanced(min(free), own_mib)
        if min(free) < max(free) * 0.9:  # another rank refuses: this one waits for it for ever
            _wait()


def _communicate(job: Job, log: Log, gpu: int, fails: str) -> None:
    if job.ranks > 1:
        if job.rank == 0:
            log(f"sglang is using nccl=={NCCL_VERSION}")
        if job.settings.fail == "hang":  # one rank that does not come hangs them all
            _wait()
        if fails == "nccl":
            raise trouble.nccl_failed(
                NcclError("ncclUnhandledCudaError", "Cuda failure 'peer access denied'")
            )
        try:
            first_all_reduce(Rank(job.rank, job.ranks, job.rank, bus_id(gpu), job.comm_id))
        except NcclError as error:
            raise trouble.nccl_failed(error) from error
    elif fails == "hang":
        _wait()


def _load(job: Job, log: Log, grip: Grip, gpu: int, free: int, fails: str) -> None:
    plan = job.plan

    def available_gb() -> str:
        return f"avail mem={(free - held) / 1024:.2f} GB"

    held = CONTEXT_MIB
    log(f"Load weight begin. {available_gb()}")
    _until(job, 0.5)
    if fails == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fails == "oom" or free < plan.loaded_mib:
        raise trouble.out_of_memory(gpu, free - held, plan.weights_mib // 60)
    held = plan.loaded_mib
    grip.hold(held)
    usage = f"mem usage={plan.weights_mib / 1024:.2f} GB"
    log(f"Load weight end. elapsed=0.23 s, type=Simulated, {available_gb()}, {usage}.")
    if fails == "memory" or free < plan.cached_mib:
        raise trouble.no_room_for_cache()
    held = plan.cached_mib
    grip.hold(held)
    half = f"{plan.kv_mib / 2048:.2f} GB"
    log(
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {plan.tokens}, K size: {half}, "
        f"V size: {half}"
    )
    log(f"Memory pool end. {available_gb()}")
    _until(job, 0.65)
    for graph in ("target verify", "draft decode") if job.speculative else ("target decode",):
        log(f"Capture {graph} CUDA graph begin. backend=full, bs=[1, 2, 4], {available_gb()}")
        _until(job, 0.75)
        if fails == "import":
            raise trouble.missing_module()
        log(f"Capture {graph} CUDA graph end. elapsed=0.12 s, mem usage=0.04 GB, {available_gb()}.")
    held = plan.whole_mib
    grip.hold(held)
    _until(job, 0.9)
    if job.rank == 0:
        log(
            f"max_total_num_tokens={plan.tokens}, chunked_prefill_size=8192, "
            "max_prefill_tokens=16384, max_running_requests=48, context_len=262144, "
            f"available_gpu_mem={(free - held) / 1024:.2f} GB"
        )
