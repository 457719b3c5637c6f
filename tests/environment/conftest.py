"""Fixtures: programs of every linkage, and ``read``, the operation over a local session."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from environment import programs


@pytest.fixture(scope="session")
def build() -> Iterator[Callable[..., Path]]:
    """``build("worker.c", "static")``: a compiled program by how it is linked."""
    # Not below pytest's own folder: another user must reach the programs.
    with tempfile.TemporaryDirectory(prefix="eagleops-programs-") as name:
        folder = Path(name)
        folder.chmod(0o755)

        def make(source: str, linked: str = "pie", *flags: str) -> Path:
            return programs.compiled(folder, source, programs.LINKED[linked], *flags)

        yield make


@pytest.fixture(scope="session")
def library(build: Callable[..., Path]) -> str:
    """overwrite.c as a shared library."""
    return str(build("overwrite.c", "pie", "-shared", "-fPIC"))


@pytest.fixture(scope="session")
def session() -> Iterator[Session]:
    """A session on this machine."""
    opened = Session.open(LocalTransport())
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def read(session: Session) -> Callable[..., dict[str, Any]]:
    """``read(pid, *names)``: the environ operation's result."""

    def call(pid: int, *names: str) -> dict[str, Any]:
        return session.call("environ", pid=pid, names=list(names))

    return call
