"""A ledger goes forward from every version that ever was, and never back."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from eagleops.errors import LedgerError
from eagleops.ledger import Ledger, schema

# What a client of version 1 wrote: a run, its facts, and their bodies.
OF_VERSION_1 = {
    "spec": {"argv": ["python3", "-m", "sglang.launch_server"], "env": {}},
    "launch": {"ready_s": 61.5},
    "outcome": {"outcome": "benched"},
    "bench": {"tok_s": {"median": 88.8}, "accept_length": 1.84},
}


def make_old(path: Path, version: int, steps=schema.STEPS) -> None:
    """A ledger as a client of that version left it, with one run."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        for step in steps[:version]:
            step(connection)
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(
            "INSERT INTO runs (uuid, created_utc, host, server, profile, engine, model, user,"
            " client, eagleops) VALUES ('0123456789abcdef', '2026-01-01T00:00:00.000000Z', 'box',"
            " 's', 'baseline', 'sglang', NULL, 'ann', 'desk', '0.1')"
        )
        for part, body in OF_VERSION_1.items():
            digest, deflated = schema.pack(body)
            row = connection.execute(
                "INSERT INTO bodies (digest, json_deflated) VALUES (?, ?)", (digest, deflated)
            )
            connection.execute(
                "INSERT INTO facts (run_id, uuid, part, recorded_utc, body_id)"
                " VALUES (1, ?, ?, '2026-01-01T00:00:01.000000Z', ?)",
                (f"fact-{part}", part, row.lastrowid),
            )


@pytest.mark.parametrize("version", range(1, len(schema.STEPS)))
def test_each_older_version_is_brought_forward(path: Path, version: int) -> None:
    """An old ledger opens with its runs and their figures, and stays beside as it was."""
    make_old(path, version)
    before = path.read_bytes()

    with Ledger.open(path) as ledger:
        run = ledger.run(1)
        (backup,) = path.parent.glob(f"ledger.db.schema-{version}-*")
        assert ledger.notice == (
            f"{path} was brought from schema {version} to {len(schema.STEPS)}; as it was: {backup}"
        )

    assert {fact.part: fact.body for fact in run.facts} == OF_VERSION_1
    header = run.header
    assert (header.outcome, header.ready_s, header.tok_s, header.accept_length) == (
        "benched",
        61.5,
        88.8,
        1.84,
    )
    with contextlib.closing(sqlite3.connect(backup)) as old:
        assert schema.version(old) == version
        assert old.execute("SELECT count(*) FROM facts").fetchone() == (len(OF_VERSION_1),)
    assert len(before) > 0


def test_a_migrated_ledger_is_the_same_as_a_new_one(path: Path, tmp_path: Path) -> None:
    """Whichever way a file came to the present version, its tables are the same."""
    make_old(path, 1)
    tables = []
    for file in (path, tmp_path / "new.db"):
        Ledger.open(file).close()
        with contextlib.closing(sqlite3.connect(file)) as connection:
            tables.append(
                connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
            )

    assert tables[0] == tables[1]


def test_the_present_version_is_brought_to_the_next(path: Path, make_run, monkeypatch) -> None:
    """A step that a later eagleops adds is taken on a ledger that this one wrote."""
    with Ledger.open(path) as ledger:
        ledger.add(make_run())

    def next_step(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE runs ADD COLUMN note TEXT")

    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, next_step))

    with Ledger.open(path) as ledger:
        assert ledger.run(1).header.profile == "baseline"
        assert ledger.add(make_run()) == 2
    with Ledger.open(path) as ledger:
        assert ledger.notice == ""


def test_a_failed_step_leaves_the_ledger_as_it_was(path: Path, make_run, monkeypatch) -> None:
    """All steps are taken or none; the next eagleops that can opens it as before."""
    with Ledger.open(path) as ledger:
        ledger.add(make_run())
    good = schema.STEPS

    def half_a_step(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE runs ADD COLUMN note TEXT")
        connection.execute("SELECT * FROM nowhere")

    monkeypatch.setattr(schema, "STEPS", (*good, half_a_step))
    with pytest.raises(LedgerError) as raised:
        Ledger.open(path)
    assert str(raised.value) == (
        f"{path}: schema {len(good)} could not be brought to {len(good) + 1}: "
        "no such table: nowhere\nThe ledger is as it was before."
    )

    monkeypatch.setattr(schema, "STEPS", good)
    with Ledger.open(path) as ledger:
        assert ledger.count() == 1
        ledger.add(make_run())


def test_a_newer_ledger_is_refused_and_left_alone(path: Path, make_run) -> None:
    """What a later version wrote is neither read half nor written to."""
    with Ledger.open(path) as ledger:
        ledger.add(make_run())
    newer = len(schema.STEPS) + 5
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {newer}")
    before = path.read_bytes()

    with pytest.raises(LedgerError) as raised:
        Ledger.open(path)

    assert str(raised.value) == (
        f"{path}: the ledger has schema {newer}, this eagleops knows up to {len(schema.STEPS)}\n"
        "Upgrade eagleops here, or name another ledger (`ledger:` in hosts.yaml)."
    )
    assert path.read_bytes() == before


def test_a_ledger_that_was_migrated_meanwhile_is_not_written(path: Path, make_run) -> None:
    """A client that holds the file open while a newer one migrates it writes nothing more."""
    with Ledger.open(path) as ledger:
        ledger.add(make_run())
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {len(schema.STEPS) + 1}")

        with pytest.raises(LedgerError, match="this eagleops knows up to"):
            ledger.add(make_run())

        assert ledger.count() == 1


def test_another_programs_database_is_left_alone(path: Path) -> None:
    """A path that names a browser's bookmarks is refused, and they stay where they are."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    before = path.read_bytes()

    with pytest.raises(LedgerError) as raised:
        Ledger.open(path)

    assert str(raised.value) == (
        f"{path}: this is a database of another program, it was left alone\n"
        "Name another file as `ledger:` in hosts.yaml."
    )
    assert path.read_bytes() == before
