"""Runs: the ledger's lists and single runs, as results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from eagleops.ledger import Header, Ledger, Run
from eagleops.ledger.aspects import lines_of
from eagleops.ledger.diff import RunDiff, diff
from eagleops.ledger.lines import SECTIONS, TITLES, Line, Value, named, rank, short
from eagleops.ledger.recipe import as_profile
from eagleops.view import Cell, Column, Table, Text, Tone, View

OUTCOME_TONES = {
    "ready": Tone.GOOD,
    "benched": Tone.GOOD,
    "died": Tone.BAD,
    "failed": Tone.BAD,
    "not_ready": Tone.WARNING,
}
# Of a run's hundreds of versions those are shown that a person looks for.
SHOWN_PARTS = ("spec", "environment", "packages", "models", "libraries", "gpus", "machine")
MOST_ROWS = 12


@attrs.frozen
class RunsReport:
    """The latest runs.

    Attributes:
        runs: The newest first.
        total: How many the ledger has.
        file: The ledger's.
        notice: What was done to its file when it was opened; mostly empty.
    """

    runs: tuple[Header, ...]
    total: int
    file: str
    notice: str = ""

    @property
    def ok(self) -> bool:
        """Whether the ledger could be read."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The list as the ``runs --json`` document's body."""
        return {
            "ok": self.ok,
            "host": None,
            "ledger": self.file,
            "total": self.total,
            "runs": [run.to_dict() for run in self.runs],
            "notice": self.notice or None,
        }

    def view(self) -> View:
        """A line a run."""
        headings = ("run", "began (UTC)", "host", "profile", "outcome", "ready s", "tok/s")
        more = ("accept length", "by")
        right = {"run", "ready s", "tok/s", "accept length"}
        columns = tuple(Column(h, "right" if h in right else "left") for h in headings + more)
        table = Table(columns, tuple(map(_row, self.runs)), empty="no run is recorded")
        notes = (Text(self.notice, Tone.WARNING),) if self.notice else ()
        return View((table,), Text(f"{len(self.runs)} of {self.total} runs; {self.file}"), notes)

    def _repr_html_(self) -> str:
        return self.view().to_html()


@attrs.frozen
class RunReport:
    """One run with all that was recorded of it."""

    run: Run

    @property
    def ok(self) -> bool:
        """Whether it was found."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The run as the ``show --json`` document's body: each part, and when it was recorded."""
        return {
            "ok": self.ok,
            **self.run.to_dict(),
            "recorded": [
                {"part": fact.part, "recorded_utc": fact.recorded_utc} for fact in self.run.facts
            ],
        }

    def view(self) -> View:
        """What it ran, with what, on what, and what came of it."""
        header = self.run.header
        columns = (Column("what"), Column("value"))
        rows: tuple[tuple[Cell, ...], ...] = (
            ("began", f"{header.created_utc} by {header.user} on {header.client}"),
            ("profile", f"{header.profile} ({header.engine})"),
            ("server", f"{header.server} on {header.host}"),
            ("outcome", _outcome(self.run)),
            ("ready after", _seconds(header.ready_s)),
            ("decode speed", _figure(header.tok_s, "tok/s")),
            ("accept length", _figure(header.accept_length, "")),
            ("clock of the host", _clock(self.run.part("clock"))),
            ("log", str((self.run.part("log") or {}).get("path") or "not recorded")),
            ("uuid", header.uuid),
        )
        tables = [Table(columns, rows, title=f"Run {header.id}")]
        lines = list(_news(lines_of(self.run, SHOWN_PARTS, with_times=True)))
        for section in SECTIONS:
            of_it = [line for line in lines if line.section == section]
            if of_it:
                tables.append(_section(section, of_it))
        return View(tuple(tables))

    def _repr_html_(self) -> str:
        return self.view().to_html()


def list_runs(
    ledger: Ledger, *, limit: int = 20, profile: str | None = None, host: str | None = None
) -> RunsReport:
    """The latest runs: see :meth:`eagleops.ledger.ledger.Ledger.runs`.

    Raises:
        LedgerError: if the ledger cannot be read.
    """
    runs = ledger.runs(limit=limit, profile=profile, host=host)
    return RunsReport(runs, ledger.count(), str(ledger.path), ledger.notice)


def show_run(ledger: Ledger, name: int | str) -> RunReport:
    """One run, by its number or its uuid's beginning.

    Raises:
        NoSuchRun: if there is none.
        LedgerError: if the ledger cannot be read.
    """
    return RunReport(ledger.run(name))


def run_as_profile(ledger: Ledger, name: int | str, profile: str | None = None) -> str:
    """One run as the text of a hosts.yaml that is its own recipe.

    Args:
        ledger: Where it is recorded.
        name: Its number, or its uuid's beginning.
        profile: What the profile is to be called.

    Raises:
        NoSuchRun, LedgerError: as :func:`show_run`.
        UsageError: if neither its profile nor its command was recorded.
    """
    return as_profile(ledger.run(name), profile)


def diff_runs(ledger: Ledger, before: int | str, after: int | str) -> RunDiff:
    """What changed between two runs.

    Raises:
        NoSuchRun, LedgerError: as :func:`show_run`.
    """
    return diff(ledger.run(before), ledger.run(after))


def _row(run: Header) -> tuple[Cell, ...]:
    return (
        str(run.id),
        run.created_utc[:19].replace("T", " "),
        run.host,
        run.profile,
        Text(run.outcome, OUTCOME_TONES.get(run.outcome, Tone.PLAIN)),
        "" if run.ready_s is None else f"{run.ready_s:.1f}",
        "" if run.tok_s is None else f"{run.tok_s:.1f}",
        "" if run.accept_length is None else f"{run.accept_length:.2f}",
        f"{run.user}@{run.client}",
    )


def _outcome(run: Run) -> Cell:
    detail = (run.part("outcome") or {}).get("detail") or ""
    told = f"{run.header.outcome}: {detail}" if detail else run.header.outcome
    return Text(told, OUTCOME_TONES.get(run.header.outcome, Tone.PLAIN))


def _seconds(value: float | None) -> str:
    return "not waited for" if value is None else f"{value:.1f} s"


def _figure(value: float | None, unit: str) -> str:
    return "not measured" if value is None else f"{value:.2f} {unit}".strip()


def _clock(clock: Any) -> str:
    if not isinstance(clock, Mapping) or clock.get("offset_s") is None:
        return "not recorded"
    return f"{clock['offset_s']:+.3f} s against the client's, ± {clock['uncertainty_s']:.3f} s"


def _section(section: str, lines: Iterable[Line]) -> Table:
    """A section's lines, those of several GPUs in one where they are alike."""
    alike: dict[tuple[str, Value], list[int]] = {}
    for line in lines:
        gpus = alike.setdefault((line.what, line.value), [])
        if line.gpu is not None:
            gpus.append(line.gpu)
    ordered = sorted(alike.items(), key=lambda item: rank(section, item[0][0]))
    rows = [(named(what, gpus), short(str(value))) for (what, value), gpus in ordered]
    shown = rows[:MOST_ROWS]
    if len(rows) > MOST_ROWS:
        shown.append((f"and {len(rows) - MOST_ROWS} more: see --json", ""))
    return Table((Column("what"), Column("value")), tuple(shown), title=TITLES[section])


def _news(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines without what the workers have as it was given to them."""
    given: set[tuple[str, Value]] = set()
    for line in lines:
        given.add((f"{line.what} in the workers", line.value))
        if (line.what, line.value) not in given:
            yield line
