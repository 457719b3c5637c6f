"""Ledgers of a test's own."""

from ledger.conftest import ledger, path

__all__ = ["ledger", "path"]
