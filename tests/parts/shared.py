"""What the processes of one test run, or several runs on one machine, must take turns at."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts import needs

# The port of the shipped profiles.
PORT = 8000


@contextlib.contextmanager
def turn(lock: Path) -> Iterator[None]:
    """Waits until nobody else holds the lock, and holds it."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def shipped_port() -> Iterator[None]:
    """One's turn at the port that the shipped profiles name."""
    with turn(Path(tempfile.gettempdir(), f"eagleops-tests-{os.getuid()}-port-{PORT}.lock")):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", PORT)) == 0:
                needs.cannot(f"another program on this machine listens on port {PORT}")
        yield


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that every process of this test run shares."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
