"""The process tree of one stand-in SGLang, from its first worker to its end."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from eagleops.sim.decoder import Decoder
from eagleops.sim.engine import scaled
from eagleops.sim.processes import SignalPipe, kill_descendants
from eagleops.sim.sglang.api import Api
from eagleops.sim.sglang.info import Info
from eagleops.sim.sglang.log import Log
from eagleops.sim.sglang.scheduler import run_detokenizer, run_scheduler
from eagleops.sim.sglang.warm_up import WarmUp
from eagleops.sim.web import Server, bound

if TYPE_CHECKING:
    import socket

    from eagleops.sim.sglang.main import Launch

UVICORN_STARTUP_FAILURE = 3
# A worker that failed says so by SIGQUIT: its end alone may be seen a moment before.
_WORD_S = 0.3


class Workers(NamedTuple):
    """The processes below the main one."""

    schedulers: tuple[BaseProcess, ...]
    ready: tuple[Connection, ...]
    detokenizer: BaseProcess

    def named(self) -> dict[int, tuple[str, BaseProcess]]:
        """Each process and its name in messages, by its sentinel."""
        named = {f"scheduler_{rank}": worker for rank, worker in enumerate(self.schedulers)}
        named["detokenizer"] = self.detokenizer
        return {worker.sentinel: (name, worker) for name, worker in named.items()}


def die(log: Log) -> NoReturn:
    """Ends the whole tree, this process with it, as ``kill_process_tree`` does."""
    pid = os.getpid()
    log(f"kill_process_tree called: parent_pid={pid}, include_parent=True, pid={pid}")
    kill_descendants()
    os.kill(pid, signal.SIGKILL)
    raise SystemExit(1)  # never reached


def leave(log: Log, status: int) -> NoReturn:
    """Ends the tree below this process, then this process with ``status``."""
    pid = os.getpid()
    log(f"kill_process_tree called: parent_pid={pid}, include_parent=False, pid={pid}")
    kill_descendants()
    sys.stdout.flush()
    os._exit(status)


def run(launch: Launch, log: Log) -> int:
    """Starts the workers, serves until the end, and returns the exit status."""

    def on_sigquit(*_: object) -> None:
        log("Received sigquit from a child process. It usually means the child failed.")
        die(log)

    signal.signal(signal.SIGQUIT, on_sigquit)
    _fail_early(launch, log)
    workers = _spawn(launch)
    _wait_until_ready(launch, workers, log)
    startup_s = time.monotonic() - launch.began_s
    timings = f"scheduler_e2e={startup_s * 0.8:.2f}, tokenizer_e2e={startup_s:.2f}"
    log(f"Engine startup timings (s): {timings}")
    clock = launch.clock()
    gpus = launch.gpus[: launch.ranks]
    decoder = Decoder(launch.layout, clock, gpus, stalls=launch.settings.fail == "stall")
    info = Info(launch.arguments, launch.plan, decoder, startup_s)
    api = Api(launch.arguments, launch.plan, decoder, info, log)
    # From here on the HTTP server's own handlers are in force.
    signals = SignalPipe(signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    server = _serve(launch, api, decoder, log)
    _arrange_failure(launch, api, workers)
    return _watch(launch, workers, api, server, signals, log)


def _fail_early(launch: Launch, log: Log) -> None:
    if launch.settings.fail == "exit":
        print(
            "Traceback (most recent call last):\n"
            f"OSError: {launch.arguments['model_path']} does not appear to have a file named "
            "config.json.",
            file=sys.stderr,
        )
        leave(log, 1)
    if launch.settings.fail == "segv":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        time.sleep(scaled(launch.settings.start_s, launch.settings) / 2)
        print("Fatal Python error: Segmentation fault", file=sys.stderr, flush=True)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)


def _spawn(launch: Launch) -> Workers:
    spawn = multiprocessing.get_context("spawn")
    schedulers, ready = [], []
    for job in launch.jobs():
        reader, writer = spawn.Pipe(duplex=False)
        scheduler = spawn.Process(target=run_scheduler, args=(job, writer))
        scheduler.start()
        writer.close()
        schedulers.append(scheduler)
        ready.append(reader)
    detokenizer = spawn.Process(target=run_detokenizer, args=(os.getpid(), launch.settings))
    detokenizer.start()
    return Workers(tuple(schedulers), tuple(ready), detokenizer)


def _wait_until_ready(launch: Launch, workers: Workers, log: Log) -> None:
    waiting = dict(zip(workers.ready, range(launch.ranks), strict=True))
    while waiting:
        for reader in wait(list(waiting)):
            assert isinstance(reader, Connection)  # noqa: S101 - what waiting holds
            try:
                reader.recv()
            except EOFError:
                _worker_died(workers, waiting[reader], log)
            del waiting[reader]
    due_s = launch.began_s + scaled(launch.settings.start_s, launch.settings)
    time.sleep(max(0.0, due_s - time.monotonic()))


def _worker_died(workers: Workers, rank: int, log: Log) -> NoReturn:
    time.sleep(_WORD_S)
    worker = workers.schedulers[rank]
    worker.join(1)
    print(
        "Traceback (most recent call last):\n"
        '  File "/simulated/sglang/srt/entrypoints/engine.py", line 2004, in wait_for_ready\n'
        f"RuntimeError: Rank {rank} scheduler died during initialization (exit code: "
        f"{worker.exitcode}). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. "
        "Run `dmesg -T | grep -i oom` to check.",
        file=sys.stderr,
        flush=True,
    )
    leave(log, 1)


def _listen(launch: Launch, log: Log) -> socket.socket:
    host, port = str(launch.arguments["host"]), int(launch.arguments["port"])
    taken = "[Errno 98] address already in use"
    if launch.settings.fail != "port":
        try:
            return bound(host, port)
        except OSError as error:
            taken = f"[Errno {error.errno}] {(error.strerror or '').lower()}"
    number, _, why = taken.partition("] ")
    log.uvicorn(
        f"{number}] error while attempting to bind on address {(host, port)!r}: {why}", "ERROR"
    )
    log.uvicorn("Waiting for application shutdown.")
    log.uvicorn("Application shutdown complete.")
    leave(log, UVICORN_STARTUP_FAILURE)


def _serve(launch: Launch, api: Api, decoder: Decoder, log: Log) -> Server:
    log.uvicorn(f"Started server process [{os.getpid()}]")
    log.uvicorn("Waiting for application startup.")
    # As in the real one the warm-up begins before the port is bound: with another server on
    # the port it is that one which answers.
    warm_up = WarmUp(launch.arguments, launch.settings, api, log, when_up=decoder.pace)
    warm_up.start()
    log.uvicorn("Application startup complete.")
    listener = _listen(launch, log)
    server = Server(listener, api.answer, log.uvicorn)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 3600}, daemon=True
    ).start()
    host, port = listener.getsockname()[:2]
    log.uvicorn(f"Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
    return server


def _arrange_failure(launch: Launch, api: Api, workers: Workers) -> None:
    victim = workers.schedulers[launch.settings.fail_rank % launch.ranks].pid
    assert victim is not None  # noqa: S101 - it was started

    def kill() -> None:
        os.kill(victim, signal.SIGKILL)

    later = {"crash": kill, "unhealthy": api.unhealthy.set}.get(launch.settings.fail)
    if launch.settings.fail == "serve":
        api.on_completion = kill
    elif later:

        def when_due() -> None:
            api.up.wait()
            time.sleep(launch.settings.after_s)
            later()

        threading.Thread(target=when_due, daemon=True).start()


def _watch(
    launch: Launch, workers: Workers, api: Api, server: Server, signals: SignalPipe, log: Log
) -> int:
    named = workers.named()
    while True:
        woken = wait([*named, signals.reader])
        for number in signals.read():
            if number == signal.SIGQUIT:
                log(f"SIGQUIT received. signum={int(number)}. It usually means one child failed.")
                die(log)
            _drain(launch, api, server, log)
            die(log)
        for sentinel in woken:
            if sentinel in named:
                name, worker = named[sentinel]
                worker.join()
                log(
                    f"Subprocess {name} (pid={worker.pid}) crashed with exit code "
                    f"{worker.exitcode}. Triggering SIGQUIT for cleanup..."
                )
                log("SIGQUIT received. signum=3. It usually means one child failed.")
                die(log)


def _drain(launch: Launch, api: Api, server: Server, log: Log) -> None:
    log("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    api.draining.set()
    due_s = time.monotonic() + scaled(launch.settings.stop_s, launch.settings)
    while server.active or time.monotonic() < due_s:
        time.sleep(0.01)
    log(
        "Gracefully exiting... Remaining number of requests 0. Remaining requests "
        "remaining_rids=[]."
    )
