"""The supervisor of one launched server: a stand-alone program that outlives the session.

Its source is written into the server's state folder and run there by the target's own
``python3 -I -S supervisor.py``; it imports the standard library alone. It reads what to
start as JSON from stdin, so neither argv nor a file ever holds the environment, answers
with one JSON line on stdout, and from then on has no tie to whoever started it: its own
session, no terminal, no descriptor but its own.

It is the subreaper of the server's tree: a worker whose parent died becomes its child, so
the tree can always be told. It ends when the last process of the tree has ended.

``process.json`` is durable before the server's program is executed, and the lock of the
launch is held until then: a server without a record cannot be.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import subprocess
import time
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional

PR_SET_CHILD_SUBREAPER = 36
LOG = "server.log"
PROCESS = "process.json"
EXIT = "exit.json"
# Written at the start and overwritten in place at the end: a disk that fills up while the
# server runs cannot swallow its exit status.
EXIT_RESERVE = "exit.json.reserve"
EXIT_RESERVE_BYTES = 1024
RETRY_S, RETRIES = 1.0, 60

_WHY = {
    errno.ENOENT: "no such file (if it is there: the interpreter after its #! is not)",
    errno.E2BIG: "argument list too long (a variable or an argument holds 128 KiB at most)",
}


def now_utc() -> str:
    """The time as RFC 3339 in UTC, to the millisecond."""
    stamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def start_ticks(pid: int) -> int:
    """When ``pid`` started, in clock ticks since boot.

    Raises:
        OSError: if there is no such process.
    """
    with open("/proc/{}/stat".format(pid), "rb") as file:
        stat = file.read()
    # The command name is in parentheses and may itself hold blanks and parentheses.
    return int(stat[stat.rindex(b")") + 1 :].split()[19])


def write_json(folder: str, name: str, content: Dict[str, Any]) -> None:
    """Writes ``folder/name`` whole or not at all, durable when this returns, mode 0600.

    Raises:
        OSError: for example ENOSPC; what stood there before still stands.
    """
    draft = os.path.join(folder, ".{}.{}.draft".format(name, os.getpid()))
    try:
        overwrite(draft, json.dumps(content).encode("ascii"))
        os.replace(draft, os.path.join(folder, name))
    except OSError:
        remove(draft)
        raise
    _sync_folder(folder)


def overwrite(path: str, content: bytes) -> None:
    """Writes over the begin of ``path``, in place; durable when this returns.

    Raises:
        OSError: if it cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Removes a file; one that is not there is no error."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class StartFailed(Exception):
    """The server was not started; nothing of it runs."""


class Supervisor:
    """Starts one server, reaps its tree, records its end."""

    def __init__(self, order: Dict[str, Any]) -> None:
        self._launch_id: str = order["launch_id"]
        self._place = {key: order[key] for key in ("boot_id", "pid_ns")}
        self._folder: str = order["state_dir"]
        self._pid = os.getpid()
        self._subreaper = False
        self._main: Optional[int] = None
        self._ended: Optional[Dict[str, Any]] = None

    def start(self, order: Dict[str, Any]) -> int:
        """Starts the server and returns its pid.

        Raises:
            StartFailed: with a sentence that says why.
        """
        signal.signal(signal.SIGTERM, self._forward)
        self._subreaper = _become_subreaper()
        try:
            overwrite(os.path.join(self._folder, EXIT_RESERVE), b" " * EXIT_RESERVE_BYTES)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            log = os.open(os.path.join(self._folder, LOG), flags, 0o600)
            os.dup2(log, 2)
            server = subprocess.Popen(
                [_raw(argument) for argument in order["argv"]],
                executable=_raw(order["executable"]),
                env={_raw(name): _raw(value) for name, value in order["env"].items()},
                cwd=_raw(order["cwd"]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=self._before_exec,  # noqa: PLW1509 - there is one thread here
            )
        except OSError as error:
            why = _WHY.get(error.errno or 0, error.strerror)
            named = os.fsdecode(error.filename or self._folder)
            raise StartFailed("cannot execute {}: {}".format(named, why)) from None
        except subprocess.SubprocessError:
            raise StartFailed("no record can be written to {}".format(self._folder)) from None
        os.close(log)
        self._main = server.pid
        server.returncode = 0  # it is reaped below, and nobody else is to wait for it
        return server.pid

    def reap(self) -> None:
        """Reaps the tree until nothing of it is left, and records the server's end."""
        with contextlib.suppress(ChildProcessError):
            while True:
                self._reap_one()
        for _ in range(RETRIES):
            if self._try_to_record_end():
                return
            time.sleep(RETRY_S)

    def _before_exec(self) -> None:
        """In the child: its record comes first, and what is ignored here is not handed on."""
        os.setpgid(0, 0)
        os.umask(0o022)
        self._record(os.getpid())
        for number in range(1, signal.NSIG):
            # KILL and STOP cannot be set, and the C library keeps some to itself.
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _record(self, pid: int) -> None:
        record = {
            "launch_id": self._launch_id,
            "pid": pid,
            "start_ticks": start_ticks(pid),
            "supervisor_pid": self._pid,
            "supervisor_start_ticks": start_ticks(self._pid),
            "subreaper": self._subreaper,
            "started_utc": now_utc(),
        }
        write_json(self._folder, PROCESS, dict(record, **self._place))

    def _reap_one(self) -> None:
        # Looked at before it is reaped: _forward must never meet a pid that is free again.
        unrecorded = self._ended is not None
        seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | (os.WNOHANG if unrecorded else 0))
        if seen is None:
            time.sleep(RETRY_S)
            self._try_to_record_end()
            return
        is_main = seen.si_pid == self._main
        if is_main:
            self._main = None
        _, status = os.waitpid(seen.si_pid, 0)
        if is_main:
            self._ended = _ending(status, self._launch_id)
            self._try_to_record_end()

    def _forward(self, number: int, _frame: Any) -> None:
        if self._main is not None:
            os.kill(self._main, number)

    def _try_to_record_end(self) -> bool:
        if self._ended is None:
            return True
        reserve = os.path.join(self._folder, EXIT_RESERVE)
        try:
            overwrite(reserve, json.dumps(self._ended).encode("ascii").ljust(EXIT_RESERVE_BYTES))
            os.replace(reserve, os.path.join(self._folder, EXIT))
            _sync_folder(self._folder)
        except OSError:
            return False
        self._ended = None
        return True


def _become_subreaper() -> bool:
    try:
        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _ending(status: int, launch_id: str) -> Dict[str, Any]:
    name = None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = number in set(signal.Signals)
        name = signal.Signals(number).name if known else "SIG{}".format(number)
    exit_status = os.WEXITSTATUS(status) if name is None else None
    ended = {"launch_id": launch_id, "exit_status": exit_status, "signal": name}
    return dict(ended, ended_utc=now_utc())


def _raw(text: str) -> bytes:
    # Not os.fsencode: it follows the locale of whatever started this process.
    return text.encode("utf-8", "surrogateescape")


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_to_end(descriptor: int) -> bytes:
    parts: List[bytes] = []
    while not parts or parts[-1]:
        parts.append(os.read(descriptor, 65536))
    return b"".join(parts)


def _detach() -> None:
    """Leaves the starter's process group, session and terminal, and is nobody's child."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def _report(answer: Dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # whoever asked is gone; process.json tells
        _write_all(1, json.dumps(answer).encode("ascii") + b"\n")
    os.dup2(0, 1)


def main() -> None:
    """Reads the order from stdin, starts the server, stays until its tree has ended."""
    _detach()
    try:
        order = json.loads(_read_to_end(0))
    except ValueError:  # the starter died in the middle of its sentence: nothing is started
        os._exit(1)
    os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), 0)
    lock: int = order.pop("lock")
    os.set_inheritable(lock, False)
    supervisor = Supervisor(order)
    try:
        pid = supervisor.start(order)
    except StartFailed as failed:
        remove(os.path.join(order["state_dir"], PROCESS))
        _report({"problem": str(failed)})
        os._exit(1)
    order.clear()
    os.close(lock)
    _report({"pid": pid})
    supervisor.reap()


if __name__ == "__main__":
    main()
