"""The processes below the API server of the stand-in vLLM: engine core and workers.

As in SGLang's stand-in they do what can be seen from outside; tokens come from the main
process's clock.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from multiprocessing.connection import Connection, wait
from typing import NamedTuple, NoReturn

from eagleops.sim import engine
from eagleops.sim.gpus import bus_id
from eagleops.sim.holders import Grip
from eagleops.sim.layout import Layout
from eagleops.sim.memory import CONTEXT_MIB, Plan, free_mib
from eagleops.sim.nccl.communicator import VERSION as NCCL_VERSION
from eagleops.sim.nccl.communicator import Rank, first_all_reduce
from eagleops.sim.nccl.variables import NcclError
from eagleops.sim.processes import kill_descendants
from eagleops.sim.settings import Settings
from eagleops.sim.vllm import __version__, trouble
from eagleops.sim.vllm.environment import SET_AGAIN, set_worker_variables
from eagleops.sim.vllm.log import Log

READY = "ready"
_WORKER_FAILED = (
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause."
)


class Job(NamedTuple):
    """What the engine core is told when it is started.

    Attributes:
        gpus: The box's GPUs, by rank.
        main: PID of the API server.
        began_s: When that started, by :func:`time.monotonic`.
    """

    model: str
    ranks: int
    gpus: tuple[int, ...]
    layout: Layout
    settings: Settings
    plan: Plan
    utilization: float
    main: int
    began_s: float
    comm_id: int

    def wait_until(self, share: float) -> None:
        """Waits until that share of the start-up time is over."""
        due_s = self.began_s + engine.scaled(self.settings.start_s, self.settings) * share
        time.sleep(max(0.0, due_s - time.monotonic()))

    def fails(self, rank: int) -> str:
        """How that rank fails; empty for not at all."""
        return self.settings.fail if rank == self.settings.fail_rank else ""


def run_engine_core(job: Job, ready: Connection) -> None:
    """The engine core's process.

    Args:
        job: What it is to do.
        ready: Gets a word when it is ready; closed without one when it failed.
    """
    if job.settings.orphans is False:
        engine.die_with_parent(job.main)
    engine.take_title("VLLM::EngineCore", SET_AGAIN)
    log = Log("EngineCore")
    log(
        "core.py:133",
        f"Initializing a V1 LLM engine (v{__version__}) with config: model={job.model!r}",
    )
    if job.ranks == 1:
        # One GPU has no worker of its own: the engine core runs the model.
        try:
            _start(job, 0, log)
        except trouble.Trouble as error:
            _fail(log, error.traceback())
        processes = []
    else:
        processes = _start_workers(job, log)
    log(
        "core.py:402",
        f"init engine (profile, create kv cache, warmup model) took {job.settings.start_s:.2f} s",
    )
    ready.send(READY)
    _mind(processes, log)


def run_worker(job: Job, rank: int, core: int, ready: Connection) -> None:
    """A worker's process."""
    engine.die_with_parent(core)
    engine.take_title(f"VLLM::Worker_TP{rank}", SET_AGAIN)
    log = Log(f"Worker_TP{rank}")
    try:
        _start(job, rank, log)
    except trouble.Trouble as error:
        log("multiproc_executor.py:953", "WorkerProc failed to start.", "ERROR")
        log("multiproc_executor.py:953", error.traceback(), "ERROR")
        sys.exit(1)
    ready.send(READY)
    while True:
        signal.pause()


def _start_workers(job: Job, log: Log) -> list[multiprocessing.process.BaseProcess]:
    set_worker_variables()
    spawn = multiprocessing.get_context("spawn")
    processes: list[multiprocessing.process.BaseProcess] = []
    readers: list[Connection] = []
    for rank in range(job.ranks):
        reader, writer = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=run_worker, args=(job, rank, os.getpid(), writer))
        worker.name = f"VllmWorker-{rank}"
        worker.start()
        writer.close()
        processes.append(worker)
        readers.append(reader)
    waiting = dict(zip(readers, processes, strict=True))
    while waiting:
        for told in wait(list(waiting)):
            assert isinstance(told, Connection)  # noqa: S101 - what waiting holds
            try:
                told.recv()
            except EOFError:
                _fail(log, _WORKER_FAILED)
            del waiting[told]
    return processes


def _fail(log: Log, why: str) -> NoReturn:
    log("core.py:1510", f"EngineCore failed to start.\n{why}", "ERROR")
    kill_descendants()
    os._exit(1)


def _mind(processes: list[multiprocessing.process.BaseProcess], log: Log) -> NoReturn:
    """Waits for a worker's death, and does not outlive it."""
    while not processes:
        signal.pause()
    wait([process.sentinel for process in processes])
    for process in processes:
        process.join(0.05)
        if process.exitcode is not None:
            log(
                "multiproc_executor.py:316",
                f"Worker proc {process.name} died unexpectedly (exit code: {process.exitcode}), "
                "shutting down executor.",
                "ERROR",
            )
            break
    log("core.py:1512", "EngineCore encountered a fatal error.", "ERROR")
    kill_descendants()
    os._exit(1)


def _start(job: Job, rank: int, log: Log) -> None:
    if rank >= len(job.gpus):
        raise trouble.no_such_device()
    fails = job.fails(rank)
    gpu = job.gpus[rank]
    job.wait_until(0.35)
    log(
        "parallel_state.py:1906",
        f"world_size={job.ranks} rank={rank} local_rank={rank} distributed_init_method="
        "tcp://127.0.0.1:0 backend=nccl",
    )
    free = free_mib(job.layout, job.main)
    grip = Grip(job.layout, gpu, job.main)
    grip.hold(64)
    _communicate(job, rank, log, fails)
    grip.hold(CONTEXT_MIB)
    if free[gpu] < job.plan.whole_mib:
        raise trouble.gpu_in_use(rank, free[gpu], job.utilization)
    _load(job, rank, log, grip)


def _communicate(job: Job, rank: int, log: Log, fails: str) -> None:
    if job.settings.fail == "hang":
        while True:
            signal.pause()
    if job.ranks == 1:
        return
    if rank == 0:
        log("pynccl.py:111", f"vLLM is using nccl=={NCCL_VERSION}")
    if fails == "nccl":
        error = NcclError("ncclUnhandledCudaError", "Cuda failure 'peer access denied'")
        raise trouble.nccl_failed(error)
    try:
        first_all_reduce(Rank(rank, job.ranks, rank, bus_id(job.gpus[rank]), job.comm_id))
    except NcclError as error:
        raise trouble.nccl_failed(error) from error


def _load(job: Job, rank: int, log: Log, grip: Grip) -> None:
    fails, plan = job.fails(rank), job.plan
    log("gpu_model_runner.py:5060", f"Starting to load model {job.model}...")
    job.wait_until(0.5)
    if fails == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if fails == "oom":
        raise trouble.out_of_memory(rank)
    grip.hold(plan.loaded_mib)
    weights = f"{plan.weights_mib / 1024:.2f} GiB"
    log("gpu_model_runner.py:5150", f"Model loading took {weights} memory and 0.230000 seconds")
    if fails == "memory":
        raise trouble.no_room_for_cache()
    if fails == "import":
        raise trouble.missing_module()
    grip.hold(plan.cached_mib)
    log("gpu_worker.py:760", f"Available KV cache memory: {plan.kv_mib / 1024:.2f} GiB")
    if rank == 0:
        log("kv_cache_utils.py:2327", f"GPU KV cache size: {plan.tokens:,} tokens")
    job.wait_until(0.85)
    grip.hold(plan.whole_mib)
    log("gpu_model_runner.py:6582", "Graph capturing finished in 0 secs, took 1.28 GiB")
