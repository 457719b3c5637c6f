"""Nights on the embedded box."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightly.boxes import Boxes
from parts.reserved import free_port


@pytest.fixture
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Boxes]:
    """Boxes of this test's own."""
    for package in ("ruptures", "scipy", "junitparser", "jinja2", "matplotlib"):
        pytest.importorskip(package, reason="the [nightly] extra is not installed")
    for name in [name for name in os.environ if name.startswith("EAGLEOPS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = Boxes(tmp_path, free_port(), free_port())
    yield made
    made.close()
