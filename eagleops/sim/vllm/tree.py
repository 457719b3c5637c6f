"""The process tree of one stand-in vLLM, from its engine core to its end."""

from __future__ import annotations

import multiprocessing
import os
import resource
import secrets
import signal
import sys
import threading
import time
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from eagleops.sim.decoder import Decoder
from eagleops.sim.engine import scaled
from eagleops.sim.processes import SignalPipe, descendants, kill_descendants
from eagleops.sim.vllm.api import Api
from eagleops.sim.vllm.log import Log, uvicorn
from eagleops.sim.vllm.report import report_statistics
from eagleops.sim.vllm.worker import Job, run_engine_core
from eagleops.sim.web import Server, bound

if TYPE_CHECKING:
    import socket

    from eagleops.sim.vllm.main import Launch


def run(launch: Launch, log: Log) -> int:
    """Starts the engine, serves until the end, and returns the exit status."""
    listener = _bind(launch, log)
    if listener is None:
        return 1
    _fail_early(launch)
    core = _start_core(launch)
    if core is None:
        print(
            "Traceback (most recent call last):\n"
            '  File "/simulated/vllm/v1/engine/utils.py", line 1432, in wait_for_engine_startup\n'
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
            "proc(s): {'EngineCore': 1}",
            file=sys.stderr,
            flush=True,
        )
        return _end(1)
    gpus = launch.gpus[: launch.arguments.ranks]
    stalls = launch.settings.fail == "stall"
    decoder = Decoder(launch.layout, launch.clock(), gpus, stalls=stalls)
    decoder.pace()
    api = Api(launch.arguments, decoder)
    signals = SignalPipe(signal.SIGTERM, signal.SIGINT)
    _serve(launch, api, listener, log)
    threading.Thread(target=report_statistics, args=(decoder, log), daemon=True).start()
    _arrange_failure(launch, api, core)
    return _watch(launch, core, api, decoder, signals, log)


def _bind(launch: Launch, log: Log) -> socket.socket | None:
    # Bound before the engine starts, listening only after; and shared with any other server
    # of this user on the port.
    try:
        if launch.settings.fail != "port":
            return bound(launch.arguments.host, launch.arguments.port, share=True)
        problem = "[Errno 98] Address already in use"
    except OSError as error:
        problem = str(error)
    log("api_utils.py:120", f"Traceback (most recent call last):\nOSError: {problem}", "ERROR")
    return None


def _fail_early(launch: Launch) -> None:
    if launch.settings.fail == "exit":
        print(
            "Traceback (most recent call last):\n"
            f"OSError: {launch.arguments.model} does not appear to have a file named config.json.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(1)
    if launch.settings.fail == "segv":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGSEGV)


def _start_core(launch: Launch) -> BaseProcess | None:
    """The engine core once it is ready; None if it failed."""
    spawn = multiprocessing.get_context("spawn")
    reader, writer = spawn.Pipe(duplex=False)
    job = Job(
        launch.arguments.model,
        launch.arguments.ranks,
        launch.gpus,
        launch.layout,
        launch.settings,
        launch.plan,
        launch.arguments.gpu_memory_utilization,
        os.getpid(),
        launch.began_s,
        int(secrets.token_hex(8), 16),
    )
    core = spawn.Process(target=run_engine_core, args=(job, writer))
    core.start()
    writer.close()
    try:
        reader.recv()
    except EOFError:
        core.join(1)
        return None
    due_s = launch.began_s + scaled(launch.settings.start_s, launch.settings)
    time.sleep(max(0.0, due_s - time.monotonic()))
    return core


def _serve(launch: Launch, api: Api, listener: socket.socket, log: Log) -> None:
    host, port = listener.getsockname()[:2]
    log("entry.py:136", "Supported tasks: ['generate']")
    log("entry.py:140", f"Starting vLLM server on http://{host}:{port}")
    uvicorn(f"Started server process [{os.getpid()}]")
    uvicorn("Waiting for application startup.")
    time.sleep(scaled(launch.settings.warmup_s, launch.settings))
    server = Server(listener, api.answer, uvicorn)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 3600}, daemon=True
    ).start()
    uvicorn("Application startup complete.")


def _arrange_failure(launch: Launch, api: Api, core: BaseProcess) -> None:
    def kill_a_worker() -> None:
        assert core.pid is not None  # noqa: S101 - it was started
        workers = descendants(core.pid) or [core.pid]
        os.kill(workers[launch.settings.fail_rank % len(workers)], signal.SIGKILL)
        api.dead.wait(1)

    if launch.settings.fail == "serve":
        api.on_completion = kill_a_worker
    later = {"crash": kill_a_worker, "unhealthy": api.unhealthy.set}.get(launch.settings.fail)
    if later:
        timer = threading.Timer(launch.settings.after_s, later)
        timer.daemon = True
        timer.start()


def _watch(
    launch: Launch, core: BaseProcess, api: Api, decoder: Decoder, signals: SignalPipe, log: Log
) -> int:
    while True:
        woken = wait([core.sentinel, signals.reader])
        if any(signals.read()):
            return _shut_down(launch, decoder, log)
        if core.sentinel in woken:
            api.dead.set()
            decoder.end()
            log(
                "core_client.py:700",
                "Engine core proc EngineCore died unexpectedly, shutting down client.",
                "ERROR",
            )
            time.sleep(0.2)  # what waits for a reply is told
            uvicorn("Shutting down")
            return _end(1)


def _shut_down(launch: Launch, decoder: Decoder, log: Log) -> int:
    log("launcher.py:254", "[shutdown] API server: shutdown triggered")
    log("launcher.py:270", "[shutdown] API server: stopping engine client mode=abort timeout=0s")
    decoder.end()
    time.sleep(scaled(launch.settings.stop_s, launch.settings))
    kill_descendants()
    log("launcher.py:279", "[shutdown] API server: engine client stopped")
    uvicorn("Shutting down")
    uvicorn("Waiting for application shutdown.")
    uvicorn("Application shutdown complete.")
    return _end(0)


def _end(status: int) -> int:
    """Ends the tree below this process; a plain exit would wait for its children."""
    kill_descendants()
    sys.stdout.flush()
    os._exit(status)
