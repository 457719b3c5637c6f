"""A comparison's result: verdicts, what they rest on, and how it is shown."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.comparison.break_even import BreakEven
from eagleops.comparison.trial import Restarts, Trial
from eagleops.comparison.verdict import Verdict
from eagleops.profile import Profile
from eagleops.view import Cell, Column, Table, Text, Tone, View
from eagleops.workflows.compare_plan import ComparePlan, remark_table

_TONES = {
    "faster": Tone.GOOD,
    "slower": Tone.BAD,
    "no_difference_shown": Tone.PLAIN,
    "not_measured": Tone.WARNING,
}


@attrs.frozen
class HeatMap:
    """Speeds by two values that were varied.

    Attributes:
        rows, columns: The keys; ``row_values`` and ``column_values`` what they took.
        tok_s: By row and column; None where nothing was measured.
    """

    rows: str
    columns: str
    row_values: tuple[str, ...]
    column_values: tuple[str, ...]
    tok_s: tuple[tuple[float | None, ...], ...]


@attrs.frozen(kw_only=True)
class CompareResult:
    """Profiles side by side.

    Attributes:
        id: The comparison's, under which its runs stand in the ledger.
        plan: What was going to be done.
        restarts: The baseline's first.
        verdicts: Each other profile against the baseline.
        aborted: Why it ended early; empty where it did not.
        notes: What is worth knowing besides.
        heat_map: Of a sweep, the speed by two of its values; None for none.
        report: The file of its report; None where none was written.
        fail_if_slower: Whether a slower profile is a failure.
    """

    host: str
    id: str
    plan: ComparePlan
    restarts: tuple[Restarts, ...]
    verdicts: tuple[Verdict, ...]
    aborted: str = ""
    notes: tuple[str, ...] = ()
    report: str | None = None
    heat_map: HeatMap | None = None
    fail_if_slower: bool = False

    @property
    def exit_status(self) -> int:
        """1 if it was aborted or a slower profile is a failure, 3 if nothing can be told."""
        conclusions = {verdict.conclusion for verdict in self.verdicts}
        if self.aborted or (self.fail_if_slower and "slower" in conclusions):
            return 1
        return 3 if "not_measured" in conclusions else 0

    @property
    def ok(self) -> bool:
        """Whether every profile was measured and compared."""
        return self.exit_status == 0

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """What was compared, the baseline first."""
        return self.plan.profiles

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every restart."""
        return tuple(trial for one in self.restarts for trial in one.trials)

    @property
    def break_even(self) -> tuple[tuple[str, BreakEven], ...]:
        """The sum of each profile that speculates, the fastest first."""
        found = [(v.profile, v.break_even) for v in self.verdicts if v.break_even is not None]
        return tuple(sorted(found, key=lambda one: -one[1].speed_at(one[1].accept_length or 1)))

    def to_dict(self) -> dict[str, Any]:
        """The result as the ``compare --json`` document's body."""
        sums = [{"profile": name, **told.to_dict()} for name, told in self.break_even]
        return {
            "ok": self.ok,
            "host": self.host,
            "comparison": self.id,
            "profiles": [one.to_dict() for one in self.restarts],
            "verdict": [verdict.to_dict() for verdict in self.verdicts],
            "break_even": sums[0] if sums else None,
            "break_evens": sums,
            "fairness": [remark.to_dict() for remark in self.plan.remarks],
            "protocol": self.plan.protocol.to_dict(),
            "aborted": self.aborted or None,
            "notes": list(self.notes),
            "report": self.report,
        }

    def view(self) -> View:
        """The figures, what is not fair, and the verdicts."""
        tables = [self._figure_table()]
        if self.plan.remarks:
            tables.append(remark_table(self.plan.remarks))
        notes = [Text(note, Tone.WARNING) for note in (*self._excluded(), *self.notes)]
        if self.aborted:
            notes.append(Text(f"Ended early: {self.aborted}", Tone.BAD))
        notes += [Text(v.words, _TONES[v.conclusion]) for v in self.verdicts[:-1]]
        last = self.verdicts[-1] if self.verdicts else None
        conclusion = (
            Text("Nothing was compared.", Tone.BAD)
            if last is None
            else Text(last.words, _TONES[last.conclusion])
        )
        if self.report:
            notes.append(Text(f"Report: {self.report}"))
        return View(tuple(tables), conclusion, tuple(notes))

    def _repr_html_(self) -> str:
        return self.view().to_html()

    def _excluded(self) -> list[str]:
        return [
            f"{trial.profile}, restart {trial.restart} does not count: {', '.join(trial.excluded)}"
            for trial in self.trials
            if trial.excluded
        ]

    def _figure_table(self) -> Table:
        heads = ("tok/s", "lowest", "highest", "restarts", "accept length", "cycle ms", "runs")
        columns = (Column("profile", wrap=False), *(Column(h, "right", wrap=False) for h in heads))
        return Table(columns, tuple(map(_row, self.restarts)), title=f"{self.host}: {self.id}")


def _row(one: Restarts) -> tuple[Cell, ...]:
    figures = one.figures
    left_out = len(one.trials) - len(figures)
    ids = [str(trial.run_id) for trial in one.trials if trial.run_id is not None]
    counted = f"{len(figures)}" + (f" ({left_out} left out)" if left_out else "")
    return (
        one.profile,
        "" if one.mean_tok_s is None else f"{one.mean_tok_s:.1f}",
        f"{min(figures):.1f}" if figures else "",
        f"{max(figures):.1f}" if figures else "",
        Text(counted, Tone.WARNING if left_out else Tone.PLAIN),
        "" if one.accept_length is None else f"{one.accept_length:.2f}",
        "" if one.cycle_ms is None else f"{one.cycle_ms:.1f}",
        ", ".join(ids),
    )
