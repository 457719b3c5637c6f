"""A short command of the machine's own, run within a time limit."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from typing import Dict, List, NamedTuple, Optional

from eagleops.remote.context import Context
from eagleops.remote.failure import Failure

# Where a login over pct or a bare sshd leaves PATH empty.
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
POLL_S = 0.05
# A process in uninterruptible sleep does not heed SIGKILL; nobody waits for it for longer.
ABANDON_S = 0.5


class Finished(NamedTuple):
    """A command that ran to its end; undecodable bytes of its output are replaced."""

    exit_status: int
    stdout: str
    stderr: str


def search_path(context: Context) -> str:
    """PATH for what an operation looks up."""
    configured: Optional[str] = context.options["path"]
    return configured or os.environ.get("PATH", "") + ":" + USUAL_PATH


def find(context: Context, program: str) -> Optional[str]:
    """The path of ``program``, or None where it is not on PATH."""
    return shutil.which(program, path=search_path(context))


def run(context: Context, argv: List[str], limit_s: float) -> Finished:
    """Runs ``argv`` to its end, in the C locale and with nothing on stdin.

    Raises:
        Failure: ``not_executable``, or ``no_answer`` if it has not ended after ``limit_s``
            seconds. A command that even SIGKILL does not end is left behind.
        Cancelled: if the operation was called off meanwhile.
    """
    environment: Dict[str, str] = dict(os.environ, LC_ALL="C", PATH=search_path(context))
    deadline = time.monotonic() + limit_s
    try:
        process = subprocess.Popen(
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Failure("not_executable", "{}: {}".format(argv[0], error.strerror)) from None
    while True:
        try:
            stdout, stderr = process.communicate(timeout=POLL_S)
            break
        except subprocess.TimeoutExpired:
            try:
                context.check()
            except BaseException:
                _abandon(process)
                raise
            if time.monotonic() >= deadline:
                _abandon(process)
                message = "{} did not answer within {:g} s".format(argv[0], limit_s)
                raise Failure("no_answer", message) from None
    return Finished(
        process.returncode, stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
    )


def _abandon(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ABANDON_S)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
