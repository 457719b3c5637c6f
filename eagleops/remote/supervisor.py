"""The supervisor of one launched server: a stand-alone program that outlives the session.

Its source is written into the server's state folder and run there by the target's own
``python3 -I -S supervisor.py``; it imports the standard library alone. It reads what to
start as JSON from stdin, so neither argv nor a file ever holds the environment, answers
with one JSON line on stdout, and from then on has no tie to whoever started it: its own
session, no terminal, no inherited descriptor.

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
import time
from datetime import datetime, timezone
from typing import Any, Dict, List, NoReturn, Optional

PR_SET_CHILD_SUBREAPER = 36
LOG = "server.log"
PROCESS = "process.json"
EXIT = "exit.json"
# Written at the start and overwritten in place at the end: a disk that fills up while the
# server runs cannot swallow its exit status.
EXIT_RESERVE = "exit.json.reserve"
EXIT_RESERVE_BYTES = 1024
RETRY_S = 1.0
RETRIES = 60


def now_utc() -> str:
    """The time as RFC 3339 in UTC, to the millisecond."""
    stamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; ``SIG<n>`` for a real-time signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIG{}".format(number)


def parse_start_ticks(stat: bytes) -> int:
    """Field 22 of ``/proc/PID/stat``: when the process started, in clock ticks since boot."""
    # The command name is in parentheses and may itself hold blanks and parentheses.
    return int(stat[stat.rindex(b")") + 1 :].split()[19])


def start_ticks(pid: int) -> int:
    """When ``pid`` started, in clock ticks since boot.

    Raises:
        OSError: if there is no such process.
    """
    with open("/proc/{}/stat".format(pid), "rb") as file:
        return parse_start_ticks(file.read())


def boot_id() -> str:
    """The kernel's name of this boot; empty where it tells none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def pid_namespace() -> int:
    """The inode of this process's PID namespace; 0 where it cannot be read."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def write_json(folder: str, name: str, content: Dict[str, Any]) -> None:
    """Writes ``folder/name`` whole or not at all, durable when this returns, mode 0600.

    Raises:
        OSError: for example ENOSPC; what stood there before still stands.
    """
    draft = os.path.join(folder, ".{}.{}.draft".format(name, os.getpid()))
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, json.dumps(content).encode("ascii"))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(draft, os.path.join(folder, name))
    except OSError:
        remove(draft)
        raise
    sync_folder(folder)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of ``data``."""
    while data:
        data = data[os.write(descriptor, data) :]


def sync_folder(folder: str) -> None:
    """Makes the folder's names durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
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
        self._order = order
        self._folder: str = order["state_dir"]
        self._main: Optional[int] = None
        self._ended: Optional[Dict[str, Any]] = None

    def start(self) -> int:
        """Starts the server and returns its pid.

        Raises:
            StartFailed: with a sentence that says why.
        """
        signal.signal(signal.SIGTERM, self._forward)
        subreaper = _become_subreaper()
        try:
            self._reserve_exit()
            log = os.open(
                os.path.join(self._folder, LOG),
                os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
                0o600,
            )
        except OSError as error:
            raise StartFailed("{}: {}".format(self._folder, error.strerror)) from None
        os.dup2(log, 2)
        go_read, go_write = os.pipe()
        fault_read, fault_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go_write)
            _become_server(self._order, log, go_read, fault_write)
        for descriptor in (log, go_read, fault_write):
            os.close(descriptor)
        try:
            self._record(pid, subreaper)
            os.write(go_write, b"g")
        except OSError as error:
            raise self._abandoned(pid, go_write, fault_read, error) from None
        os.close(go_write)
        self._main = pid
        fault = _read_to_end(fault_read)
        if fault:
            os.waitpid(pid, 0)
            self._main = None
            remove(os.path.join(self._folder, PROCESS))
            raise StartFailed(fault.decode("utf-8", "surrogateescape"))
        return pid

    def reap(self) -> None:
        """Reaps the tree until nothing of it is left, and records the server's end."""
        try:
            while True:
                self._reap_one()
        except ChildProcessError:
            pass
        for _ in range(RETRIES):
            if self._try_to_record_end():
                return
            time.sleep(RETRY_S)

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
            self._ended = _ending(status, self._order["launch_id"])
            self._try_to_record_end()

    def _forward(self, number: int, _frame: Any) -> None:
        if self._main is not None:
            os.kill(self._main, number)

    def _reserve_exit(self) -> None:
        path = os.path.join(self._folder, EXIT_RESERVE)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, b" " * EXIT_RESERVE_BYTES)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _try_to_record_end(self) -> bool:
        if self._ended is None:
            return True
        reserve = os.path.join(self._folder, EXIT_RESERVE)
        try:
            descriptor = os.open(reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                content = json.dumps(self._ended).encode("ascii")
                write_all(descriptor, content.ljust(EXIT_RESERVE_BYTES))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(reserve, os.path.join(self._folder, EXIT))
            sync_folder(self._folder)
        except OSError:
            return False
        self._ended = None
        return True

    def _record(self, pid: int, subreaper: bool) -> None:
        write_json(
            self._folder,
            PROCESS,
            {
                "launch_id": self._order["launch_id"],
                "pid": pid,
                "start_ticks": start_ticks(pid),
                "boot_id": boot_id(),
                "pid_ns": pid_namespace(),
                "supervisor_pid": os.getpid(),
                "supervisor_start_ticks": start_ticks(os.getpid()),
                "subreaper": subreaper,
                "started_utc": now_utc(),
            },
        )

    def _abandoned(self, pid: int, go_write: int, fault_read: int, error: OSError) -> StartFailed:
        os.close(go_write)  # the child reads its end and goes, nothing executed
        os.close(fault_read)
        os.waitpid(pid, 0)
        return StartFailed("{}: {}".format(self._folder, error.strerror))


def _become_subreaper() -> bool:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def _become_server(order: Dict[str, Any], log: int, go_read: int, fault_write: int) -> NoReturn:
    """In the forked child: waits for the word, then executes the server's program."""
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.umask(0o022)
        _default_signals()
        _close_all_but({0, 1, 2, go_read, fault_write})
        if not os.read(go_read, 1):
            os._exit(126)
        step = "cannot enter {}".format(order["cwd"])
        os.chdir(_raw(order["cwd"]))
        step = "cannot execute {}".format(order["executable"])
        environment = {_raw(name): _raw(value) for name, value in order["env"].items()}
        argv = [_raw(argument) for argument in order["argv"]]
        os.execve(_raw(order["executable"]), argv, environment)  # noqa: S606 - no shell is the point
    except OSError as error:
        write_all(fault_write, _raw("{}: {}".format(step, _reason(error))))
    finally:
        os._exit(127)


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "no such file or directory (if it is there: the interpreter after its #! is not)"
    if error.errno == errno.E2BIG:
        return "argument list too long (one variable or argument holds 128 KiB at most)"
    return error.strerror or str(error)


def _raw(text: str) -> bytes:
    # Not os.fsencode: it follows the locale of whatever started this process.
    return text.encode("utf-8", "surrogateescape")


def _default_signals() -> None:
    """What is ignored stays ignored across exec: hand on no ignored and no blocked signal."""
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            # The C library keeps some to itself.
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _ending(status: int, launch_id: str) -> Dict[str, Any]:
    signalled = os.WIFSIGNALED(status)
    return {
        "launch_id": launch_id,
        "exit_status": None if signalled else os.WEXITSTATUS(status),
        "signal": signal_name(os.WTERMSIG(status)) if signalled else None,
        "ended_utc": now_utc(),
    }


def _read_to_end(descriptor: int) -> bytes:
    parts: List[bytes] = []
    while True:
        part = os.read(descriptor, 65536)
        if not part:
            os.close(descriptor)
            return b"".join(parts)
        parts.append(part)


def _close_all_but(kept: "set[int]") -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # the listing's own descriptor
                os.close(int(name))


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
        write_all(1, json.dumps(answer).encode("ascii") + b"\n")
    os.dup2(0, 1)


def main() -> None:
    """Reads the order from stdin, starts the server, stays until its tree has ended."""
    _detach()
    try:
        order = json.loads(_read_to_end(0))
    except ValueError:  # the starter died in the middle of its sentence: nothing is started
        os._exit(1)
    os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # becomes descriptor 0
    lock: int = order.pop("lock")
    os.set_inheritable(lock, False)
    _close_all_but({0, 1, 2, lock})
    supervisor = Supervisor(order)
    try:
        pid = supervisor.start()
    except StartFailed as failed:
        remove(os.path.join(order["state_dir"], EXIT_RESERVE))
        _report({"problem": str(failed)})
        os._exit(1)
    order.pop("env")
    os.close(lock)
    _report({"pid": pid})
    supervisor.reap()


if __name__ == "__main__":
    main()
