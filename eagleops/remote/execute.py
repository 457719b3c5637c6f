"""Operation ``execute``: run one command to its end."""

from __future__ import annotations

import base64
import os
import subprocess
import time
from typing import Any, Dict, Generator, List, Optional

from eagleops.remote.context import Context
from eagleops.remote.failure import Failure

POLL_S = 0.05


def execute(
    context: Context,
    argv: List[str],
    env: Optional[Dict[str, str]] = None,
    stdin: str = "",
    max_bytes: int = 64 * 1024 * 1024,
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Runs ``argv`` and gathers its output.

    Args:
        context: The operation's surroundings; its time limit ends the command by SIGKILL.
        argv: The command; no shell reads it.
        env: Its whole environment, or None for this process's own.
        stdin: What it reads, in base64.
        max_bytes: More output than this is a failure, never cut silently.

    Raises:
        Failure: ``not_found``, ``not_executable``, ``time_limit`` or ``too_much_output``.
    """
    started = time.monotonic()
    raw_env = None if env is None else {os.fsencode(k): os.fsencode(v) for k, v in env.items()}
    try:
        process = subprocess.Popen(
            [os.fsencode(argument) for argument in argv],
            env=raw_env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise Failure("not_found", "no such command: {}".format(argv[0])) from None
    except OSError as error:
        raise Failure("not_executable", "{}: {}".format(argv[0], error.strerror)) from None
    pending: Optional[bytes] = base64.b64decode(stdin)
    while True:
        try:
            stdout, stderr = process.communicate(pending, timeout=POLL_S)
            break
        except subprocess.TimeoutExpired:
            pending = None
            try:
                context.sleep(0)
            except BaseException:
                process.kill()
                process.wait()
                raise
        yield {"event": "running", "elapsed_s": time.monotonic() - started}
    if len(stdout) + len(stderr) > max_bytes:
        raise Failure("too_much_output", "{} wrote more than {} bytes".format(argv[0], max_bytes))
    return {
        "exit_status": process.returncode,
        "stdout": base64.b64encode(stdout).decode("ascii"),
        "stderr": base64.b64encode(stderr).decode("ascii"),
        "elapsed_s": time.monotonic() - started,
    }
