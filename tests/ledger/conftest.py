"""Ledgers of this test's own, and runs as a launch would record them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eagleops.ledger import Header, Ledger, Run

MakeRun = Callable[..., Run]


def make_run(
    *, profile: str = "baseline", host: str = "box", created_utc: str | None = None, **parts: Any
) -> Run:
    """A run that was launched and got ready."""
    times = {} if created_utc is None else {"created_utc": created_utc}
    header = Header(
        host=host,
        server=profile,
        profile=profile,
        engine="sglang",
        model="/models/kimi",
        user="ann",
        client="desk",
        eagleops="0.1",
        **times,
    )
    spec = {
        "argv": ["/env/bin/python3", "-m", "sglang.launch_server", "--tp-size", "8"],
        "env": {"NCCL_PROTO": "LL", "PATH": "/usr/bin"},
        "cwd": "/",
    }
    return Run.begin(header, {"spec": spec, **parts})


@pytest.fixture(name="make_run")
def make_run_fixture() -> MakeRun:
    """A run, with whatever parts are given: ``make_run(profile="p", bench={...})``."""
    return make_run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where this test's ledger is."""
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with Ledger.open(path) as opened:
        yield opened


OnDisk = Callable[[Path], bytes]


@pytest.fixture
def on_disk() -> OnDisk:
    """All bytes of the files called ledger in a folder, and what stands in them deflated."""

    def search(folder: Path) -> bytes:
        found = [file.read_bytes() for file in sorted(folder.glob("ledger.db*")) if file.is_file()]
        deflated = [
            _inflated(data[match.start() :])
            for data in found
            for match in re.finditer(b"x\x9c", data)
        ]
        return b"".join(found + deflated)

    return search


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data)
    except zlib.error:
        return b""
