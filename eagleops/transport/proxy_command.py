"""ProxyCommand: a program whose stdin and stdout lead to the server.

Paramiko's own ProxyCommand reads an ended program's pipe in a busy loop for ever; a program
that holds one end of a socket pair is a plain socket to Paramiko, and its end is an end.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess


def start(command: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Starts ``command`` by a shell, as ssh does, and returns the way in and the process."""
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            # The person's own ssh_config is shell text; names in it were checked before.
            ["/bin/sh", "-c", f"exec {command}"],
            stdin=its.fileno(),
            stdout=its.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours, process


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a proxy command whose socket was closed."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
        return
    process.kill()
    process.wait()
