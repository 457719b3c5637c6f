"""Opening a ledger's file: made if it is not there, migrated if it is old, never guessed at.

What is damaged is set aside; what is somebody else's, or newer than this version, is left
as it is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

import attrs

from eagleops.errors import LedgerError
from eagleops.ledger import place, schema
from eagleops.ledger.place import is_corrupt, name_held, set_aside, way_to_save

MODE = 0o600  # a run's environment and paths are its owner's business


@attrs.frozen
class Opened:
    """An open connection, and what there is to say of it.

    Attributes:
        read_only: Runs can be looked at and not recorded.
        notice: What was done to the file on the way; empty where nothing was.
    """

    connection: sqlite3.Connection
    read_only: bool
    notice: str = ""


def open_file(path: Path, timeout_s: float) -> Opened:
    """Opens the ledger at ``path``.

    Raises:
        LedgerError: if it is a folder, no ledger, newer than this version, or cannot be made.
    """
    if path.is_dir():
        raise refusal(path, "is a folder, a ledger is a file", "Name a file in it: ledger.db.")
    if path.parent.exists() and not path.parent.is_dir():
        raise refusal(path, f"{path.parent} is no folder", "Name another place as `ledger:`.")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with name_held(path):
            return _open_held(path, timeout_s)
    except OSError as error:
        if not path.is_file():
            raise refusal(
                path,
                f"the ledger cannot be made: {error.strerror}",
                "Name another place as `ledger:` in hosts.yaml, or set XDG_DATA_HOME.",
            ) from error
    return _open_read_only(path, timeout_s)


def refusal(path: Path, problem: str, way_out: str = "") -> LedgerError:
    """An error that leaves the file as it is."""
    return LedgerError(problem=problem, where=str(path), way_out=way_out, file=str(path))


def _open_held(path: Path, timeout_s: float) -> Opened:
    notice = ""
    if not path.exists():
        _make(path)
    elif trouble := place.damage(path):
        notice = _begin_anew(path, trouble)
    with _closed_on_error(_connect(path, timeout_s, "rw")) as connection:
        trouble = _trouble(path, connection)
        if not trouble:
            return _migrated(path, connection, notice)
    connection.close()
    notice = _begin_anew(path, trouble)
    with _closed_on_error(_connect(path, timeout_s, "rw")) as connection:
        if trouble := _trouble(path, connection):
            raise refusal(path, f"a new ledger cannot be read: {trouble}")
    return Opened(connection, read_only=False, notice=notice)


def _begin_anew(path: Path, trouble: str) -> str:
    aside = set_aside(path)
    _make(path)
    return (
        f"{path} was damaged ({trouble}): it is now {aside.name}, and a new ledger was begun. "
        + way_to_save(aside)
    )


def _make(path: Path) -> None:
    """A new ledger: whole before it gets its name, so that no half one is ever met."""
    if any(Path(f"{path}{companion}").exists() for companion in place.COMPANIONS):
        set_aside(path)  # a log without its database would be replayed into the new one
    new = Path(f"{path}.new")
    for leftover in ("", *place.COMPANIONS):
        Path(f"{new}{leftover}").unlink(missing_ok=True)
    try:
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            mode = "DELETE" if place.is_remote(path.parent) else "WAL"
            connection.execute(f"PRAGMA journal_mode = {mode}")
            schema.climb(connection)
        new.rename(path)
    except sqlite3.Error as error:
        raise refusal(path, f"the ledger cannot be made: {error}") from error


def _connect(path: Path, timeout_s: float, mode: str) -> sqlite3.Connection:
    # A mode that cannot create: a name that has vanished must not become an empty ledger.
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    try:
        return sqlite3.connect(
            uri, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise refusal(path, f"the ledger cannot be opened: {error}") from error


def _trouble(path: Path, connection: sqlite3.Connection) -> str:
    """What is wrong with a file that looked like a database; empty if nothing was found.

    Raises:
        LedgerError: if it is another program's database.
    """
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != schema.APPLICATION_ID:
            raise refusal(
                path,
                "this is a database of another program, it was left alone",
                "Name another file as `ledger:` in hosts.yaml.",
            )
        for table in ("runs", "facts", "bodies"):
            connection.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608
    except sqlite3.Error as error:
        if is_corrupt(error) or "no such table" in str(error):
            return str(error)
        raise refusal(path, f"the ledger cannot be opened: {error}") from error
    return ""


def _migrated(path: Path, connection: sqlite3.Connection, notice: str) -> Opened:
    found, known = schema.version(connection), len(schema.STEPS)
    if found > known:
        raise newer(path, found)
    if found == known:
        return Opened(connection, read_only=not os.access(path, os.W_OK), notice=notice)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    backup = path.with_name(f"{path.name}.schema-{found}-{stamp}")
    try:
        with contextlib.closing(sqlite3.connect(f"{backup}.partial")) as copy:
            connection.backup(copy)
        Path(f"{backup}.partial").rename(backup)
        schema.climb(connection)
    except sqlite3.Error as error:
        Path(f"{backup}.partial").unlink(missing_ok=True)
        problem = f"schema {found} could not be brought to {known}: {error}"
        raise refusal(path, problem, "The ledger is as it was before.") from error
    told = f"{path} was brought from schema {found} to {known}; as it was: {backup}"
    return Opened(connection, read_only=False, notice=told)


def newer(path: Path, found: int) -> LedgerError:
    """The error for a file that a later version of eagleops has written."""
    return refusal(
        path,
        f"the ledger has schema {found}, this eagleops knows up to {len(schema.STEPS)}",
        "Upgrade eagleops here, or name another ledger (`ledger:` in hosts.yaml).",
    )


def _open_read_only(path: Path, timeout_s: float) -> Opened:
    if trouble := place.damage(path):
        raise refusal(path, f"the ledger is damaged ({trouble}), and its folder is read-only")
    try:
        return _read_only(path, _connect(path, timeout_s, "ro"))
    except LedgerError as error:
        # SQLite's shared memory cannot be made here: but where nobody may write, nobody does.
        if "cannot be opened" not in error.problem:
            raise
    return _read_only(path, _connect(path, timeout_s, "ro&immutable=1"))


def _read_only(path: Path, connection: sqlite3.Connection) -> Opened:
    with _closed_on_error(connection):
        trouble = _trouble(path, connection)
        if trouble:
            raise refusal(path, f"the ledger is damaged ({trouble}), and its folder is read-only")
        found = schema.version(connection)
        if found > len(schema.STEPS):
            raise newer(path, found)
        if found < len(schema.STEPS):
            problem = f"schema {found} is older than this eagleops, and is read-only here"
            raise refusal(path, problem, "Make the file and its folder writable.")
    return Opened(connection, read_only=True)


@contextlib.contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
