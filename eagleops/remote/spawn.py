"""Operation ``spawn``: start a server that outlives the session, or change nothing.

Everything that can be known beforehand is checked first. All launches of this user on this
machine wait for one another here (a few hundredths of a second each): a name and a port have
one owner. The lock is handed to the supervisor, which lets go of it when the server is on
record; so it holds whatever becomes of this process.

What can still end a server with its session is systemd-logind with KillUserProcesses=yes, for
users other than root and without lingering (``loginctl enable-linger``): it goes by cgroup.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import Any, Dict, Generator, Optional

from eagleops.remote import (
    launch_lock,
    launch_order,
    preflight,
    redact,
    server_record,
    supervisor,
)
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.reserve import give_back
from eagleops.remote.servers import find_server

Order = Dict[str, Any]
Launch = Dict[str, Any]

START_LIMIT_S = 30.0
POLL_S = 0.01
# Moved aside while a new launch is tried: it comes back if that launch is refused.
ASIDE = ".aside"
# What of a launch is on record without its secrets, or not at all.
_NOT_AS_IT_IS = ("argv", "env", "expected", "secret_env", "secret_words")


def spawn(
    context: Context, name: str, launch: Launch
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Starts a server.

    Args:
        context: The operation's surroundings.
        name: The server's.
        launch: ``launch_id``, ``argv``, ``env``, ``inherit``, ``cwd``; ``port``;
            ``require_free_mib``; ``secret_env`` and ``secret_words``, the names of variables
            and the places in ``argv`` whose values are secrets whatever their names say;
            ``profile``, ``engine``, ``model``, ``expected``, ``expected_workers``,
            ``readiness`` and ``nccl_log`` are kept for later.

    Raises:
        Failure: ``bad_name``, ``server_exists``, ``port_taken``, ``gpu_busy``,
            ``spawn_failed`` or ``locked``; no trace is left.
    """
    try:
        yield {"event": "starting", "name": name}
        preflight.require_name(name)
        folder = os.path.join(server_record.servers_home(context), name)
        lock = launch_lock.take(context)
        try:
            _start(context, folder, name, launch, lock)
        finally:
            os.close(lock)  # no LOCK_UN: the supervisor may still hold on to it
        server = find_server(context, name)
        if server is None:
            raise Failure("spawn_failed", "{} was started, and its record is gone".format(name))
        return {"server": server}
    finally:
        give_back(context, launch["launch_id"])


def _start(context: Context, folder: str, name: str, launch: Launch, lock: int) -> None:
    preflight.require_free_name(context, name)
    env = launch_order.environment(context, name, launch, folder)
    start_folder = launch_order.folder(launch)
    executable = launch_order.program(launch["argv"], env, start_folder)
    preflight.require_free_port(context, launch.get("port"))
    preflight.require_free_gpus(context, launch.get("require_free_mib"), env)
    fresh = not os.path.isdir(folder)
    try:
        _make_room(folder)
        _write_spec(folder, launch, env, start_folder, executable)
        order = {
            "state_dir": folder,
            "launch_id": launch["launch_id"],
            "boot_id": server_record.boot_id(),
            "pid_ns": server_record.pid_namespace(),
            "executable": executable,
            "argv": launch["argv"],
            "env": env,
            "cwd": start_folder,
            "lock": lock,
        }
        problem = _run_supervisor(context, folder, order)
    except OSError as error:
        problem = "{}: {}".format(error.filename or folder, error.strerror)
    if problem is not None:
        _undo(folder, fresh=fresh)
        raise Failure("spawn_failed", problem)
    shutil.rmtree(os.path.join(folder, ASIDE), ignore_errors=True)


def _run_supervisor(context: Context, folder: str, order: Order) -> Optional[str]:
    """Hands the order over; None once the server runs, else what went wrong."""
    program = os.path.join(folder, "supervisor.py")
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"LANG": "C.UTF-8"},
        pass_fds=[order["lock"]],
        start_new_session=True,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
    with process.stdout as answers:
        try:
            with process.stdin as orders:
                orders.write(json.dumps(order).encode("ascii"))
            process.wait(START_LIMIT_S)
            os.set_blocking(answers.fileno(), False)
            answer = _answer(context, answers.fileno())
        except (BrokenPipeError, subprocess.TimeoutExpired):
            process.kill()
            answer = {}
    problem = "the supervisor ({}) gave no answer".format(sys.executable)
    return None if "pid" in answer else str(answer.get("problem", problem))


def _answer(context: Context, descriptor: int) -> Dict[str, Any]:
    data = b""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        try:
            part = os.read(descriptor, 65536)
        except BlockingIOError:
            context.sleep(POLL_S)
            continue
        if not part:
            break
        data += part
    answer: Dict[str, Any] = json.loads(data) if data.endswith(b"\n") else {}
    return answer


def _make_room(folder: str) -> None:
    """Moves what the run before has left into ``previous``, and the supervisor's source in."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    aside = os.path.join(folder, ASIDE)
    previous = os.path.join(folder, server_record.PREVIOUS)
    shutil.rmtree(aside, ignore_errors=True)
    left = [entry for entry in os.listdir(folder) if entry != server_record.PREVIOUS]
    if server_record.PROCESS in left:
        if os.path.isdir(previous):
            os.rename(previous, aside)
        os.mkdir(previous, 0o700)
        # The record first: without it the folder is nobody's, whatever happens next.
        for entry in sorted(left, key=lambda entry: entry != server_record.PROCESS):
            os.rename(os.path.join(folder, entry), os.path.join(previous, entry))
    else:  # a launch that came to nothing
        _clear(folder)
    loader = supervisor.__spec__.loader
    source = loader.get_source(supervisor.__name__)  # type: ignore[union-attr]
    _write(os.path.join(folder, "supervisor.py"), source)


def _undo(folder: str, *, fresh: bool) -> None:
    """Takes back what this launch has made: as if it had never been tried."""
    if fresh:
        shutil.rmtree(folder, ignore_errors=True)
        return
    _clear(folder)
    previous = os.path.join(folder, server_record.PREVIOUS)
    aside = os.path.join(folder, ASIDE)
    if os.path.exists(os.path.join(previous, server_record.PROCESS)):
        for entry in sorted(os.listdir(previous), key=lambda entry: entry == server_record.PROCESS):
            os.rename(os.path.join(previous, entry), os.path.join(folder, entry))
        os.rmdir(previous)
    if os.path.isdir(aside):
        os.rename(aside, previous)


def _clear(folder: str) -> None:
    for entry in os.listdir(folder):
        if entry not in (server_record.PREVIOUS, ASIDE):
            os.unlink(os.path.join(folder, entry))


def _write_spec(
    folder: str, launch: Launch, env: Dict[str, str], start_folder: str, executable: str
) -> None:
    spec = {key: value for key, value in launch.items() if key not in _NOT_AS_IT_IS}
    words = launch.get("secret_words") or ()
    argv = [redact.REDACTED if n in words else word for n, word in enumerate(launch["argv"])]
    spec.update(
        argv=redact.argv(argv),
        env=_without_secrets(redact.environment(env), launch),
        expected=_without_secrets(redact.json_value(launch.get("expected") or {}), launch),
        cwd=start_folder,
        executable=executable,
    )
    supervisor.write_json(folder, server_record.SPEC, spec)


def _without_secrets(variables: Dict[str, Any], launch: Launch) -> Dict[str, Any]:
    left_out = [name for name in launch.get("secret_env") or () if name in variables]
    return dict(variables, **dict.fromkeys(left_out, redact.REDACTED))


def _write(path: str, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
