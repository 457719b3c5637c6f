"""The report's table: variables by workers, workers that are alike in one column.

Of 64 workers 63 are as a rule alike. What is of interest is the one that is not, and it gets
a column of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import attrs

from eagleops.environment.story import TONES
from eagleops.environment.values import shown
from eagleops.view import Cell, Column, Table, Text, Tone

if TYPE_CHECKING:
    from eagleops.environment.report import EnvReport, ProcessReport

# More columns than this, and the processes go down the side.
MOST_ACROSS = 8
MOST_VALUE_CHARACTERS = 24

_INITIAL = {
    "whole": Text("whole", Tone.DIM),
    "partly_overwritten": Text("overwritten", Tone.DIM),
    "overwritten": Text("overwritten", Tone.DIM),
    "empty": Text("none", Tone.DIM),
    "unreadable": Text("unreadable", Tone.WARNING),
}


@attrs.frozen
class Group:
    """Processes that follow one another and of which the table says the same."""

    processes: tuple[ProcessReport, ...]

    @property
    def first(self) -> ProcessReport:
        """The one whose cells stand for all of them."""
        return self.processes[0]

    @property
    def label(self) -> str:
        """Its column's heading, for example ``TP0 to TP7``."""
        last = self.processes[-1]
        return (
            self.first.label if len(self.processes) == 1 else f"{self.first.label} to {last.label}"
        )

    @property
    def pids(self) -> Cell:
        """The PID, or how many there are."""
        alone = len(self.processes) == 1
        return _dimmed(str(self.first.pid) if alone else f"{len(self.processes)} PIDs", self.first)

    @property
    def role(self) -> Cell:
        """What they are, in a row of their own."""
        ranks = self.label if self.first.rank else ""
        return _dimmed(" ".join(filter(None, (self.first.role, ranks))) or "-", self.first)


def table(report: EnvReport) -> Table:
    """Variables by groups of alike workers, a verdict each; groups across while they are few."""
    groups = fold(report.processes)
    return _across(report, groups) if len(groups) <= MOST_ACROSS else _down(report, groups)


def fold(processes: Iterable[ProcessReport]) -> tuple[Group, ...]:
    """Neighbours with one role and the same cells become one group; the order stays."""
    return tuple(Group(tuple(alike)) for _, alike in groupby(processes, key=_sameness))


def _sameness(process: ProcessReport) -> tuple[object, ...]:
    # Without a role there is no telling that two processes do the same work.
    who = process.role or process.pid
    cells = tuple(_cell(process, name) for name in process.variables)
    return (who, process.counted, _INITIAL[process.initial], cells)


def _across(report: EnvReport, groups: tuple[Group, ...]) -> Table:
    columns = [Column("variable", wrap=False), Column("expected")]
    columns += [Column(group.label) for group in groups]
    rows: list[tuple[Cell, ...]] = [
        ("PID", "", *(group.pids for group in groups)),
        ("/proc/PID/environ", "", *(_INITIAL[group.first.initial] for group in groups)),
    ]
    rows += [
        (
            name,
            short(shown(value) if value is not None else "(not set)"),
            *(_cell(group.first, name) for group in groups),
        )
        for name, value in report.expected.items()
    ]
    return Table(tuple(columns), tuple(rows))


def _down(report: EnvReport, groups: tuple[Group, ...]) -> Table:
    columns = [Column("PID", "right"), Column("process"), Column("/proc/PID/environ")]
    columns += [Column(name) for name in report.expected]
    rows = [
        (
            group.pids,
            group.role,
            _INITIAL[group.first.initial],
            *(_cell(group.first, name) for name in report.expected),
        )
        for group in groups
    ]
    return Table(tuple(columns), tuple(rows))


def _cell(process: ProcessReport, name: str) -> Cell:
    one = process.variables[name]
    kind = one.verdict.kind
    if not process.counted:
        return Text(kind, Tone.DIM)
    if kind != "wrong":
        return Text(kind, TONES[kind])
    seen = one.witnesses.effective.values[-1:] or (shown(one.witnesses.live.value),)
    return Text(f"wrong: {short(seen[0])}" if seen[0] is not None else "wrong", TONES[kind])


def short(text: str | None) -> str:
    """A value as it fits into a cell, on one line."""
    text = text or ""
    text = text if text.isprintable() else repr(text)[1:-1]
    if len(text) <= MOST_VALUE_CHARACTERS:
        return text
    return text[: MOST_VALUE_CHARACTERS - 1] + "…"


def _dimmed(text: str, process: ProcessReport) -> Cell:
    return text if process.counted else Text(text, Tone.DIM)
