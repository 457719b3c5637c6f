"""The ledger: every run, found again, with all that was recorded of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import attrs
from typing_extensions import Self

from eagleops.errors import NoSuchRun
from eagleops.ledger import journal, rows
from eagleops.ledger.database import BUSY_S, Database
from eagleops.ledger.place import default_path
from eagleops.ledger.redaction import without_secrets
from eagleops.ledger.run import Fact, Header, Run, with_figures

# What a person types of a run's uuid; fewer digits would be taken for its number.
UUID_DIGITS = 8


@attrs.define(eq=False)
class Ledger:
    """A ledger's file. Use it as a context manager, or close it."""

    _database: Database

    @classmethod
    def open(cls, path: str | Path | None = None, *, timeout_s: float = BUSY_S) -> Ledger:
        """Opens the ledger at ``path``, and makes it where there is none.

        A damaged file gets another name and a new ledger is begun: :attr:`notice` says so.

        Args:
            path: A file; without one :func:`~eagleops.ledger.place.default_path`.
            timeout_s: How long to wait for another client's write.

        Raises:
            LedgerError: if it is a folder, another program's database, newer than this
                version of eagleops, or can be neither made nor read.
        """
        database = Database(Path(path).expanduser() if path else default_path(), timeout_s)
        database.open()
        return cls(database)

    @property
    def path(self) -> Path:
        """Its file."""
        return self._database.path

    @property
    def notice(self) -> str:
        """What was done to the file when it was opened; empty where nothing was."""
        return self._database.notice

    def add(self, run: Run, *, secrets: Iterable[str] = ()) -> int:
        """Records a run and returns its number. Secrets are left out before.

        Args:
            run: What :meth:`Run.begin` gave.
            secrets: Values that must not be recorded whatever name they stand under.

        Raises:
            LedgerError: if it cannot be written; then nothing of it was.
        """
        facts = _without_secrets(run.facts, secrets)
        with self._database.writing() as connection:
            run_id = rows.insert_run(connection, with_figures(run.header, facts))
            for fact in facts:
                rows.insert_fact(connection, run_id, fact)
        return run_id

    def update(self, run_id: int, parts: Mapping[str, Any], *, secrets: Iterable[str] = ()) -> None:
        """Records more of a run. Nothing that was recorded before is changed.

        Args:
            run_id: Its number.
            parts: A body for each part: :data:`eagleops.ledger.run.PARTS`.
            secrets: As :meth:`add`.

        Raises:
            NoSuchRun: if the ledger has none of that number.
            LedgerError: as :meth:`add`.
        """
        facts = _without_secrets([Fact(part, body) for part, body in parts.items()], secrets)
        with self._database.writing() as connection:
            header = rows.header(connection, run_id)
            if header is None:
                raise self._no_such_run(connection, run_id)
            for fact in facts:
                rows.insert_fact(connection, run_id, fact)
            rows.write_figures(connection, run_id, with_figures(header, facts))

    def run(self, name: int | str, parts: Collection[str] | None = None) -> Run:
        """A run with all its facts.

        Args:
            name: Its number, or 8 or more digits of its uuid's beginning.
            parts: Read these parts alone: many runs are read so at once.

        Raises:
            NoSuchRun: if there is none, or more than one.
            LedgerError: if the ledger cannot be read.
        """
        with self._database.reading() as connection:
            found = self._find(connection, str(name))
            return Run(found, tuple(rows.facts(connection, found.id or 0, parts)))

    def runs(
        self, *, limit: int = 20, profile: str | None = None, host: str | None = None
    ) -> tuple[Header, ...]:
        """The latest runs, the newest first.

        Args:
            limit: How many at most.
            profile: Of this profile alone.
            host: On this host alone.

        Raises:
            LedgerError: if the ledger cannot be read.
        """
        with self._database.reading() as connection:
            return tuple(rows.headers(connection, limit=limit, profile=profile, host=host))

    def count(self) -> int:
        """How many runs there are."""
        with self._database.reading() as connection:
            (count,) = connection.execute("SELECT count(*) FROM runs").fetchone()
            return int(count)

    def export(self, file: str | Path | IO[str]) -> int:
        """Writes every run as a line of JSON, and returns how many.

        Args:
            file: A path, which appears when it is whole, or a text stream.

        Raises:
            LedgerError: if the ledger cannot be read.
            UsageError: if the file cannot be written.
        """
        with self._database.reading() as connection:
            return journal.write(file, self._all(connection))

    def import_(self, file: str | Path | IO[str]) -> journal.Imported:
        """Takes in runs that :meth:`export` wrote: all of the file, or with an error nothing.

        A run or a fact that is known already is not taken in again.

        Raises:
            UsageError: for a line that is no run, with its number.
            LedgerError: if the ledger cannot be written.
        """
        added = extended = known = 0
        with self._database.writing() as connection:
            for run in journal.read(file):
                before = rows.run_id(connection, run.header.uuid)
                new = rows.merge(connection, before, run, _without_secrets(run.facts, ()))
                added += before is None
                extended += before is not None and new > 0
                known += before is not None and not new
        return journal.Imported(added, extended, known)

    def close(self) -> None:
        """Lets go of the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _all(self, connection: sqlite3.Connection) -> Iterator[Run]:
        for header in rows.in_order(connection):
            yield Run(header, tuple(rows.facts(connection, header.id or 0)))

    def _find(self, connection: sqlite3.Connection, name: str) -> Header:
        if name.isdecimal() and len(name) < UUID_DIGITS:
            found = [rows.header(connection, int(name))]
        elif len(name) >= UUID_DIGITS:
            found = list(rows.by_uuid(connection, name))
        else:
            found = []
        if len(found) > 1:
            raise NoSuchRun(
                problem=f"{len(found)} runs are named {name}...", where=str(self.path), run=name
            )
        if not found or found[0] is None:
            raise self._no_such_run(connection, name)
        return found[0]

    def _no_such_run(self, connection: sqlite3.Connection, name: int | str) -> NoSuchRun:
        (last,) = connection.execute("SELECT max(id) FROM runs").fetchone()
        return NoSuchRun(
            problem=f"there is no run {name}"
            + ("; the ledger is empty" if last is None else f"; the last one is {last}"),
            where=str(self.path),
            way_out="List them: eagleops runs.",
            run=str(name),
        )


def _without_secrets(facts: Iterable[Fact], known: Iterable[str]) -> list[Fact]:
    facts = list(facts)
    numbered = {str(number): fact.body for number, fact in enumerate(facts)}
    plain = without_secrets(numbered, known)
    return [attrs.evolve(fact, body=plain[str(n)]) for n, fact in enumerate(facts)]
