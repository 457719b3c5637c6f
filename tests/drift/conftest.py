"""Ledgers of a test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eagleops.ledger import Ledger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where this test's ledger is."""
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """An empty ledger."""
    with Ledger.open(path) as opened:
        yield opened
