"""The report: every expected variable in every process of a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.environment import folding, wording
from eagleops.environment.story import Story, story
from eagleops.environment.values import Value, shown
from eagleops.environment.verdict import Kind, Verdict
from eagleops.environment.witnesses import InitialState, Witnesses
from eagleops.errors import UsageError
from eagleops.view import Table, View

KINDS: tuple[Kind, ...] = ("ok", "wrong", "missing", "unknown")


@attrs.frozen
class VariableReport:
    """One variable in one process.

    Attributes:
        expected: None for a variable that must not be set.
    """

    expected: Value | None
    verdict: Verdict
    witnesses: Witnesses

    def to_dict(self) -> dict[str, Any]:
        """As in ``verify-env --json``."""
        witnesses, verdict = self.witnesses, self.verdict
        return {
            "verdict": verdict.kind,
            "initial": shown(witnesses.initial.value),
            "live": shown(witnesses.live.value),
            "effective": next(iter(witnesses.effective.values[-1:]), None),
            "notes": [*verdict.notes, *verdict.asides],
            "why": verdict.why,
            "way_out": verdict.way_out,
            "proved": verdict.proved,
        }


@attrs.frozen
class ProcessReport:
    """One process.

    Attributes:
        role, rank: As the engine's title or arguments tell them; None where they do not.
        initial: The state of ``/proc/PID/environ``.
        counted: Whether the verdict rests on it: not on a bystander.
    """

    pid: int
    role: str | None
    rank: str | None
    title: str
    initial: InitialState
    counted: bool
    variables: Mapping[str, VariableReport]

    @property
    def label(self) -> str:
        """What to call it in a heading."""
        return self.rank or self.role or f"PID {self.pid}"

    def to_dict(self) -> dict[str, Any]:
        """As in ``verify-env --json``."""
        return {
            "pid": self.pid,
            "role": self.role,
            "rank": self.rank,
            "title": self.title,
            "initial": self.initial,
            "counted": self.counted,
            "variables": {name: one.to_dict() for name, one in self.variables.items()},
        }


@attrs.frozen
class MissingWorker:
    """A process that the profile must bring up, and that is not there."""

    role: str
    rank: str | None
    title: str

    def to_dict(self) -> dict[str, Any]:
        """As in ``verify-env --json``."""
        return attrs.asdict(self)


@attrs.frozen
class EnvReport:
    """What a server's processes run with.

    Attributes:
        host: The machine.
        server: The launched server's name; None for another one's processes.
        expected: Name to value; None for a variable that must not be set.
        processes: All that were read, the main process first.
        missing_workers: Expected processes that are not there.
        conf_files: What the conf files that NCCL reads set, by path and name: it stands in no
            environment until NCCL puts it there, and changes what is measured all the same.
        notes: What is worth knowing of the server as a whole.
    """

    host: str
    server: str | None
    expected: Mapping[str, Value | None]
    processes: tuple[ProcessReport, ...]
    missing_workers: tuple[MissingWorker, ...] = ()
    conf_files: Mapping[str, Mapping[str, Value]] = {}
    notes: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[ProcessReport, ...]:
        """The processes that the verdict rests on."""
        return tuple(process for process in self.processes if process.counted)

    @property
    def counts(self) -> dict[Kind, int]:
        """How many verdicts of each kind."""
        counts = dict.fromkeys(KINDS, 0)
        for _, _, one in self.judged():
            counts[one.verdict.kind] += 1
        return counts

    @property
    def exit_status(self) -> int:
        """1 for something wrong or missing, 3 for something unknown, else 0."""
        counts = self.counts
        if counts["wrong"] or counts["missing"] or self.missing_workers:
            return 1
        return 3 if counts["unknown"] or not self.counted else 0

    @property
    def ok(self) -> bool:
        """Whether every expected variable is in effect in every process."""
        return self.exit_status == 0

    @property
    def conclusion(self) -> str:
        """The report in one line."""
        return wording.conclusion(self)

    def judged(self) -> Iterator[tuple[ProcessReport, str, VariableReport]]:
        """Each variable in each process that counts."""
        for process in self.counted:
            for name, one in process.variables.items():
                yield process, name, one

    def explain(self, variable: str, pid: int | None = None) -> Story:
        """The story of one variable in one process.

        Args:
            variable: An expected one.
            pid: Of a process in the report; without one the first in which the variable is
                not ``ok``, or else the last worker.

        Raises:
            UsageError: if the report has no such variable or process.
        """
        if variable not in self.expected:
            raise UsageError(
                problem=f"nothing is expected of {variable}",
                where=self.host,
                way_out=f"Expected are {', '.join(self.expected) or 'no variables'}. "
                f"Give a value for it: --expect {variable}=VALUE.",
            )
        process = self._chosen(variable, pid)
        return story(process.pid, process.label, process.variables[variable])

    def _chosen(self, variable: str, pid: int | None) -> ProcessReport:
        if pid is not None:
            for process in self.processes:
                if process.pid == pid:
                    return process
            raise UsageError(
                problem=f"PID {pid} is no process of this server",
                where=self.host,
                way_out=f"Its processes: {', '.join(str(one.pid) for one in self.processes)}.",
            )
        candidates = self.counted or self.processes
        if not candidates:
            raise UsageError(problem="the server has no process", where=self.host)
        for process in candidates:
            if process.variables[variable].verdict.kind != "ok":
                return process
        return candidates[-1]

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``verify-env --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "server": self.server,
            "expected": {name: shown(value) for name, value in self.expected.items()},
            "processes": [process.to_dict() for process in self.processes],
            "counts": self.counts,
            "missing_workers": [worker.to_dict() for worker in self.missing_workers],
            "conf_files": {
                path: {name: shown(value) for name, value in settings.items()}
                for path, settings in self.conf_files.items()
            },
            "notes": list(self.notes),
            "conclusion": self.conclusion,
        }

    def table(self) -> Table:
        """Variables by workers, a verdict each; workers that are alike share a column."""
        return folding.table(self)

    def view(self) -> View:
        """The table, what is not ok and why, and the conclusion."""
        return wording.view(self)

    def _repr_html_(self) -> str:
        return self.view().to_html()
