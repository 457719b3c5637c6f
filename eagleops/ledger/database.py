"""One client's connection to a ledger's file: transactions, and errors that say what to do."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

from eagleops.errors import LedgerDamaged, LedgerError
from eagleops.ledger import schema
from eagleops.ledger.opening import Opened, newer, open_file, refusal
from eagleops.ledger.place import is_corrupt, name_held, set_aside, way_to_save

BUSY_S = 30.0


@attrs.define(eq=False)
class Database:
    """A ledger's file, for one process: safe for its threads, not to be carried over a fork.

    Attributes:
        path: The file.
        notice: What was done to the file when it was opened; empty where nothing was.
    """

    path: Path
    timeout_s: float = BUSY_S
    notice: str = attrs.field(default="", init=False)
    _opened: Opened | None = attrs.field(default=None, init=False)
    _identity: tuple[int, int] | None = attrs.field(default=None, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A view of the file that does not change meanwhile.

        Raises:
            LedgerError: if it cannot be read; LedgerDamaged once it was set aside.
        """
        with self._lock, self._telling():
            connection = self._current().connection
            with _transaction(connection, "BEGIN"):
                yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All that is written inside is there afterwards, or with an error nothing of it.

        Raises:
            LedgerError: if it cannot be written; LedgerDamaged once it was set aside.
        """
        with self._lock, self._telling():
            opened = self._current()
            if opened.read_only:
                raise refusal(
                    self.path,
                    "the ledger is read-only: nothing can be recorded",
                    "Make the file and its folder writable, or name another as `ledger:`.",
                )
            with _transaction(opened.connection, "BEGIN IMMEDIATE"):
                if (found := schema.version(opened.connection)) != len(schema.STEPS):
                    raise newer(self.path, found)
                yield opened.connection

    def open(self) -> None:
        """Opens the file if it is not open.

        Raises:
            LedgerError: as :func:`eagleops.ledger.opening.open_file`.
        """
        with self._lock:
            self._current()

    def close(self) -> None:
        """Lets go of the file."""
        with self._lock:
            if self._opened is not None:
                self._opened.connection.close()
                self._opened = self._identity = None

    def _current(self) -> Opened:
        # Another client may have set the file aside: what is written there nobody looks for.
        if self._opened is not None and _identity(self.path) != self._identity:
            self.close()
        if self._opened is None:
            self._opened = open_file(self.path, self.timeout_s)
            self._identity = _identity(self.path)
            self.notice = self._opened.notice or self.notice
        return self._opened

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if is_corrupt(error):
                raise self._damaged(error) from error
            raise _told(self.path, error, self.timeout_s) from error

    def _damaged(self, error: sqlite3.Error) -> LedgerError:
        met = self._identity
        self.close()
        try:
            with name_held(self.path):
                # Another client may have been quicker.
                aside = set_aside(self.path) if _identity(self.path) == met else None
        except OSError as failed:
            problem = f"the ledger is damaged ({error}), and cannot be set aside"
            return refusal(self.path, f"{problem}: {failed.strerror}")
        where = "another client has set it aside" if aside is None else f"it is now {aside.name}"
        return LedgerDamaged(
            problem=f"the ledger is damaged ({error}): {where}; the next command begins a new one",
            where=str(self.path),
            way_out="" if aside is None else way_to_save(aside),
            file=str(self.path),
            set_aside="" if aside is None else str(aside),
        )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A failed statement may have ended the transaction by itself (a full disk does).
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _told(path: Path, error: sqlite3.Error, timeout_s: float) -> LedgerError:
    said = str(error)
    if "locked" in said or "busy" in said:
        return refusal(
            path,
            f"another client has kept the ledger for {timeout_s:g} s",
            "See who holds it: fuser -v FILE; then try again.",
        )
    if "full" in said or "disk I/O error" in said:
        return refusal(
            path,
            f"the ledger cannot be written: {said}",
            "What it held is whole. Make room on the disk, then try again.",
        )
    return refusal(path, f"the ledger cannot be used: {said}")
