"""Operation ``execute``: run one command to its end."""

from __future__ import annotations

import base64
import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import Any, Dict, Generator, List, Optional

from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.redact import REDACTED
from eagleops.remote.servers import find_record

POLL_S = 0.05
CHUNK_BYTES = 256 * 1024
# What makes a process one of a server's: of another program it would be untrue.
_OF_THE_SERVER = frozenset(
    {"EAGLEOPS_SERVER", "EAGLEOPS_LAUNCH_ID", "NCCL_DEBUG_FILE", "SGLANG_RUN_ID"}
)


def execute(
    context: Context,
    argv: List[str],
    env: Optional[Dict[str, str]] = None,
    stdin: str = "",
    max_bytes: int = 64 * 1024 * 1024,
    env_of: Optional[str] = None,
    tell: bool = False,
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Runs ``argv`` and gathers its output.

    Args:
        context: The operation's surroundings. The command, and what it started in its own
            process group, is ended by SIGKILL when the time limit passes or the client goes.
        argv: The command; no shell reads it.
        env: Its whole environment, or None for this process's own.
        stdin: What it reads, in base64.
        max_bytes: More output than this is a failure, never cut silently.
        env_of: A launched server whose environment it gets, in place of ``env``; without
            secrets, which are on no record.
        tell: Yield ``log`` events with the lines of both streams as they come.

    Raises:
        Failure: ``not_found``, ``not_executable``, ``bad_argument``, ``time_limit``,
            ``too_much_output`` or ``no_such_server``.
    """
    started = time.monotonic()
    if env_of is not None:
        env = _environment_of(context, env_of)
    process = _start(argv, env)
    streams = _Streams(process, base64.b64decode(stdin))
    try:
        while streams.open:
            streams.pass_on(POLL_S)
            streams.check(argv[0], max_bytes)
            lines = streams.lines() if tell else []
            if lines:
                yield {"event": "log", "lines": lines}
            context.sleep(0)
        # Both streams may end before the process does: it may close them.
        while not _ended(process):
            context.sleep(0)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        streams.close()
    yield {"event": "ended", "elapsed_s": time.monotonic() - started}
    return {
        "exit_status": process.returncode,
        "stdout": streams.text("stdout"),
        "stderr": streams.text("stderr"),
        "elapsed_s": time.monotonic() - started,
    }


def _environment_of(context: Context, server: str) -> Dict[str, str]:
    """What the server was launched with; what marks its own processes is left out."""
    recorded = find_record(context, server).spec.get("env") or {}
    return {
        name: value
        for name, value in recorded.items()
        if value != REDACTED and name not in _OF_THE_SERVER
    }


def _start(argv: List[str], env: Optional[Dict[str, str]]) -> "subprocess.Popen[bytes]":
    raw_env = None if env is None else {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
    try:
        return subprocess.Popen(
            [os.fsencode(argument) for argument in argv],
            env=raw_env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Failure("not_found", "no such command: {}".format(argv[0])) from None
    except OSError as error:
        message = "{}: {}".format(argv[0], error.strerror)
        raise Failure("not_executable", message) from None
    except ValueError as error:  # a NUL byte, or a name with =
        raise Failure("bad_argument", "{}: {}".format(argv[0], error)) from None


def _ended(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True


class _Streams:
    """A child's three pipes, fed and read together."""

    def __init__(self, process: "subprocess.Popen[bytes]", stdin: bytes) -> None:
        self.read_bytes = 0
        self.open = 2
        self._left = memoryview(stdin)
        self._pipes = [process.stdin, process.stdout, process.stderr]
        self._read: Dict[str, List[bytes]] = {"stdout": [], "stderr": []}
        self._told = {"stdout": 0, "stderr": 0}
        self._begun: Dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self._selector = selectors.DefaultSelector()
        for name in self._read:
            self._selector.register(getattr(process, name), selectors.EVENT_READ, name)
        os.set_blocking(process.stdin.fileno(), False)  # type: ignore[union-attr]
        self._selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")  # type: ignore[arg-type]

    def pass_on(self, timeout_s: float) -> None:
        """Reads and writes what is ready."""
        for key, _events in self._selector.select(timeout_s):
            if key.data == "stdin":
                self._feed(key.fileobj)
                continue
            data = os.read(key.fd, CHUNK_BYTES)
            if data:
                self._read[key.data].append(data)
                self.read_bytes += len(data)
            else:
                self._selector.unregister(key.fileobj)
                self.open -= 1

    def check(self, name: str, max_bytes: int) -> None:
        """Raises ``too_much_output`` if more than ``max_bytes`` were read."""
        if self.read_bytes > max_bytes:
            message = "{} wrote more than {} bytes".format(name, max_bytes)
            raise Failure("too_much_output", message)

    def lines(self) -> List[str]:
        """The lines of both streams that have ended since the last call.

        A progress bar ends its lines with a carriage return.
        """
        found: List[str] = []
        for name, pieces in self._read.items():
            text = self._begun[name] + b"".join(pieces[self._told[name] :])
            self._told[name] = len(pieces)
            *ended, self._begun[name] = text.replace(b"\r", b"\n").split(b"\n")
            found += [line.decode("utf-8", "replace") for line in ended if line.strip()]
        return found

    def close(self) -> None:
        """Closes what is still open."""
        self._selector.close()
        for pipe in self._pipes:
            if pipe is not None:
                pipe.close()

    def text(self, name: str) -> str:
        """What came on a stream, in base64."""
        return base64.b64encode(b"".join(self._read[name])).decode("ascii")

    def _feed(self, stdin: Any) -> None:
        if self._left:
            try:
                self._left = self._left[os.write(stdin.fileno(), self._left[:CHUNK_BYTES]) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._left = memoryview(b"")
        if not self._left:
            self._selector.unregister(stdin)
            stdin.close()
