"""What the tests of GPUs and processes share: sessions on this machine, and own children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.remote import process_table
from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from parts import needs
from parts.poll import until

DATA = Path(__file__).parents[1] / "data" / "gpus"
NVML = Path(__file__).with_name("fake_nvml.c")


@pytest.fixture
def captured() -> Callable[[str], str]:
    """The text of a captured output."""
    return lambda name: (DATA / name).read_text(encoding="utf-8")


@pytest.fixture
def open_session() -> Iterator[Callable[..., Session]]:
    """``open_session(python=..., env=..., **options)`` on this machine; closed after the test."""
    opened: list[Session] = []

    def start(
        python: str = sys.executable, env: dict[str, str] | None = None, **options: Any
    ) -> Session:
        transport = LocalTransport(env=env)
        opened.append(Session.open(transport, python=python, options={"nvml": False, **options}))
        return opened[-1]

    yield start
    for session in opened:
        session.close()


@pytest.fixture
def session(open_session: Callable[..., Session]) -> Session:
    """A session on this machine, without any GPU."""
    return open_session()


@attrs.frozen
class Child:
    """A process that a test started."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Its PID."""
        return self.process.pid

    @property
    def target(self) -> dict[str, int]:
        """It as a target of the kill operation."""
        stat = process_table.stat(self.pid)
        assert stat is not None
        return {"pid": self.pid, "start_ticks": stat.start_ticks}

    def line(self) -> str:
        """The next line of its stdout."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def state(self) -> str:
        """Its state; empty once it was reaped."""
        stat = process_table.stat(self.pid)
        return "" if stat is None else stat.state


@pytest.fixture
def start() -> Iterator[Callable[..., Child]]:
    """``start(program)`` runs Python text in a session of its own until it waits after "ready".

    Whatever of that session is left after the test is killed.
    """
    started: list[Child] = []

    def run(
        program: str = "print('ready', flush=True); time.sleep(600)",
        *arguments: str,
        prefix: tuple[str, ...] = (),
        **settings: Any,
    ) -> Child:
        text = "import os, signal, sys, threading, time\n" + textwrap.dedent(program)
        child = Child(
            subprocess.Popen(
                [*prefix, sys.executable, "-c", text, *arguments],
                stdout=subprocess.PIPE,
                start_new_session=True,
                **settings,
            )
        )
        started.append(child)
        assert child.line() == "ready"
        until(lambda: child.state() != "R")
        return child

    yield run
    for child in started:
        for stat in process_table.table().values():
            if stat.sid == child.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(stat.pid, signal.SIGKILL)
        child.process.wait(60)
        assert child.process.stdout is not None
        child.process.stdout.close()


@pytest.fixture
def fake_smi(tmp_path: Path) -> Callable[[str], str]:
    """``fake_smi(script)`` makes an ``nvidia-smi`` of a shell script; returns a PATH with it."""

    def make(script: str) -> str:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{textwrap.dedent(script)}")
        program.chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"

    return make


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """``build("OLD", "LOST")`` compiles fake_nvml.c with those macros; returns the library."""

    def compile_it(*macros: str) -> Path:
        compiler = needs.program("cc", "gcc")
        library = tmp_path / "libnvidia-ml.so.1"
        defines = [f"-D{macro}" for macro in macros]
        argv = [compiler, "-shared", "-fPIC", "-w", *defines, "-o", library, NVML]
        subprocess.run(argv, check=True, capture_output=True)
        return library

    return compile_it


@pytest.fixture
def empty_library(tmp_path: Path) -> Path:
    """A libnvidia-ml.so.1 without any function: it stands before a real one, if there is."""
    compiler = needs.program("cc", "gcc")
    library = tmp_path / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-o", library, "-xc", "/dev/null"], check=True)
    return library
