"""The ledger's tables, and the steps that lead from each older version to the present one.

Version n of the schema is what the first n steps make. A new file takes all of them, so a
step that is wrong is wrong everywhere. A step that was released is never changed.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable
from typing import Any

from eagleops.ledger.run import Fact, Header, with_figures

# "eagl": says that a SQLite file is a ledger, before anything is read from it.
APPLICATION_ID = 0x6561676C

Step = Callable[[sqlite3.Connection], None]


def _runs_and_their_facts(connection: sqlite3.Connection) -> None:
    # A fact's body stands apart, under its hash: what many runs share (300 package versions,
    # a list of model files) is there once, and listing runs reads none of it.
    for statement in (
        """CREATE TABLE runs (
            id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, created_utc TEXT NOT NULL,
            host TEXT NOT NULL, server TEXT NOT NULL, profile TEXT NOT NULL,
            engine TEXT NOT NULL, model TEXT,
            user TEXT NOT NULL, client TEXT NOT NULL, eagleops TEXT NOT NULL)""",
        """CREATE TABLE bodies (
            id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, json_deflated BLOB NOT NULL)""",
        """CREATE TABLE facts (
            id INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs (id),
            uuid TEXT NOT NULL UNIQUE, part TEXT NOT NULL, recorded_utc TEXT NOT NULL,
            body_id INTEGER NOT NULL REFERENCES bodies (id))""",
        "CREATE INDEX facts_of_a_run ON facts (run_id)",
    ):
        connection.execute(statement)


def _figures_beside_a_run(connection: sqlite3.Connection) -> None:
    for statement in (
        "ALTER TABLE runs ADD COLUMN outcome TEXT NOT NULL DEFAULT 'started'",
        "ALTER TABLE runs ADD COLUMN ready_s REAL",
        "ALTER TABLE runs ADD COLUMN tok_s REAL",
        "ALTER TABLE runs ADD COLUMN accept_length REAL",
        "CREATE INDEX runs_by_time ON runs (created_utc)",
        "CREATE INDEX runs_of_a_host ON runs (host, created_utc)",
        "CREATE INDEX runs_of_a_profile ON runs (profile, created_utc)",
    ):
        connection.execute(statement)
    nobody = Header(host="", server="", profile="", engine="")
    for (run_id,) in connection.execute("SELECT id FROM runs").fetchall():
        rows = connection.execute(
            "SELECT part, json_deflated FROM facts JOIN bodies ON bodies.id = body_id"
            " WHERE run_id = ? AND part IN ('outcome', 'launch', 'bench') ORDER BY facts.id",
            (run_id,),
        )
        seen = with_figures(nobody, [Fact(part, unpack(packed)) for part, packed in rows])
        connection.execute(
            "UPDATE runs SET outcome = ?, ready_s = ?, tok_s = ?, accept_length = ? WHERE id = ?",
            (seen.outcome, seen.ready_s, seen.tok_s, seen.accept_length, run_id),
        )


STEPS: tuple[Step, ...] = (_runs_and_their_facts, _figures_beside_a_run)


def pack(body: Any) -> tuple[bytes, bytes]:
    """JSON as it stands in the file: its hash, and the deflated text.

    The hash is the text's: another zlib deflates the same text to other bytes.
    """
    text = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
    return hashlib.sha256(text).digest(), zlib.compress(text, 6)


def unpack(packed: bytes) -> Any:
    """The value that :func:`pack` was given, from its deflated text.

    Raises:
        ValueError: if these are other bytes.
    """
    try:
        return json.loads(zlib.decompress(packed))
    except zlib.error as error:
        raise ValueError(str(error)) from None


def version(connection: sqlite3.Connection) -> int:
    """The schema's version; 0 for a file without a table."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def climb(connection: sqlite3.Connection) -> None:
    """Takes the steps that the file lacks: all of them, or none if one fails."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for step in STEPS[version(connection) :]:
            step(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
