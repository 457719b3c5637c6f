"""The SQL of the ledger: rows in, headers and facts out."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from eagleops.errors import LedgerError
from eagleops.ledger import schema
from eagleops.ledger.run import Fact, Header, Run, with_figures

COLUMNS = (
    "id",
    "uuid",
    "created_utc",
    "host",
    "server",
    "profile",
    "engine",
    "model",
    "user",
    "client",
    "eagleops",
    "outcome",
    "ready_s",
    "tok_s",
    "accept_length",
)
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM runs "  # noqa: S608 - names of this module
_INSERT = f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
# Exporting reads this many headers at a time.
PAGE = 1000


def insert_run(connection: sqlite3.Connection, header: Header) -> int:
    """Writes a header under a new number, and returns it."""
    values = [None if name == "id" else getattr(header, name) for name in COLUMNS]
    return int(connection.execute(_INSERT, values).lastrowid or 0)


def insert_fact(connection: sqlite3.Connection, run_id: int, fact: Fact) -> None:
    """Writes a fact; its body only where no run had the very same."""
    digest, deflated = schema.pack(fact.body)
    connection.execute(
        "INSERT INTO bodies (digest, json_deflated) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (digest, deflated),
    )
    connection.execute(
        "INSERT INTO facts (run_id, uuid, part, recorded_utc, body_id)"
        " VALUES (?, ?, ?, ?, (SELECT id FROM bodies WHERE digest = ?))",
        (run_id, fact.uuid, fact.part, fact.recorded_utc, digest),
    )


def write_figures(connection: sqlite3.Connection, run_id: int, header: Header) -> None:
    """Writes what a list shows of a run beside it."""
    connection.execute(
        "UPDATE runs SET outcome = ?, ready_s = ?, tok_s = ?, accept_length = ? WHERE id = ?",
        (header.outcome, header.ready_s, header.tok_s, header.accept_length, run_id),
    )


def merge(
    connection: sqlite3.Connection, run_id: int | None, run: Run, facts: Iterable[Fact]
) -> int:
    """Writes a run that came from another ledger, and returns how many facts were new.

    Args:
        connection: In a transaction.
        run_id: Its number here; None where it is not known.
        run: Its header, and by their uuids its facts.
        facts: Its facts without secrets.
    """
    if run_id is None:
        run_id = insert_run(connection, run.header)
    known = {
        uuid for (uuid,) in connection.execute("SELECT uuid FROM facts WHERE run_id = ?", (run_id,))
    }
    new = [fact for fact in facts if fact.uuid not in known]
    for fact in new:
        insert_fact(connection, run_id, fact)
    here = header(connection, run_id)
    if new and here is not None:
        write_figures(connection, run_id, with_figures(here, new))
    return len(new)


def run_id(connection: sqlite3.Connection, uuid: str) -> int | None:
    """The number of the run of that whole uuid."""
    row = connection.execute("SELECT id FROM runs WHERE uuid = ?", (uuid,)).fetchone()
    return None if row is None else int(row[0])


def header(connection: sqlite3.Connection, run_id: int) -> Header | None:
    """The run of that number."""
    row = connection.execute(_SELECT + "WHERE id = ?", (run_id,)).fetchone()
    return None if row is None else _header(row)


def by_uuid(connection: sqlite3.Connection, beginning: str) -> Iterator[Header]:
    """The runs whose uuid begins so."""
    query = _SELECT + "WHERE uuid >= ? AND uuid < ? ORDER BY id"
    yield from map(_header, connection.execute(query, (beginning, beginning + "\U0010ffff")))


def headers(
    connection: sqlite3.Connection, *, limit: int, profile: str | None, host: str | None
) -> Iterator[Header]:
    """The latest runs, the newest first."""
    asked = {"profile": profile, "host": host}
    wanted = {column: value for column, value in asked.items() if value is not None}
    where = " AND ".join(f"{column} = ?" for column in wanted)
    query = (
        _SELECT
        + (f"WHERE {where} " if where else "")
        + "ORDER BY created_utc DESC, id DESC LIMIT ?"
    )
    yield from map(_header, connection.execute(query, (*wanted.values(), max(limit, 0))))


def in_order(connection: sqlite3.Connection) -> Iterator[Header]:
    """Every run by its number."""
    last = 0
    while page := connection.execute(
        _SELECT + "WHERE id > ? ORDER BY id LIMIT ?", (last, PAGE)
    ).fetchall():
        yield from map(_header, page)
        last = page[-1][0]


def facts(
    connection: sqlite3.Connection, run_id: int, parts: Collection[str] | None = None
) -> Iterator[Fact]:
    """A run's facts as they were recorded.

    Args:
        connection: The ledger's.
        run_id: The run's number.
        parts: Of these parts alone; None for all.

    Raises:
        LedgerError: if a body is not what was written.
    """
    wanted = "" if parts is None else f" AND part IN ({', '.join('?' * len(parts))})"
    query = (
        "SELECT part, json_deflated, recorded_utc, facts.uuid"  # noqa: S608 - question marks
        f" FROM facts JOIN bodies ON bodies.id = body_id WHERE run_id = ?{wanted} ORDER BY facts.id"
    )
    for part, deflated, recorded_utc, uuid in connection.execute(query, (run_id, *(parts or ()))):
        try:
            body = schema.unpack(deflated)
        except ValueError as error:
            raise LedgerError(
                problem=f"run {run_id}: its {part} cannot be read: {error}",
                way_out="The other parts and runs are whole: `eagleops runs`.",
            ) from error
        yield Fact(part, body, recorded_utc, uuid)


def _header(row: tuple[object, ...]) -> Header:
    return Header(**dict(zip(COLUMNS, row, strict=True)))  # type: ignore[arg-type]
