"""Sweep: a grid over a profile's values, each point measured by the comparison's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.comparison.grid import Axis, Point, grid, overlay
from eagleops.comparison.trial import Restarts
from eagleops.comparison.verdict import Verdict
from eagleops.errors import UsageError
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.view import Cell, Column, Table, Text, Tone, View
from eagleops.workflows.compare import compare
from eagleops.workflows.compare_plan import Protocol
from eagleops.workflows.compare_result import CompareResult, HeatMap
from eagleops.written import comment, handed_on, scalar

_PLANE = 2


@attrs.frozen(kw_only=True)
class SweepResult:
    """A grid, measured.

    Attributes:
        base: The profile whose values were varied; the grid is measured by it.
        points: In the grid's order.
        comparison: Every point against the base.
    """

    base: Profile
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    comparison: CompareResult

    @property
    def ok(self) -> bool:
        """Whether every point was measured."""
        return self.comparison.ok

    @property
    def exit_status(self) -> int:
        """As the comparison's."""
        return self.comparison.exit_status

    @property
    def best(self) -> Point | None:
        """The fastest point; None where none was measured."""
        measured = [point for point in self.points if self.restarts(point).mean_tok_s is not None]
        return max(measured, key=lambda p: self.restarts(p).mean_tok_s or 0.0, default=None)

    def restarts(self, point: Point) -> Restarts:
        """A point's restarts."""
        found = (one for one in self.comparison.restarts if one.profile == point.profile.name)
        return next(found)

    def verdict(self, point: Point) -> Verdict | None:
        """A point against the base."""
        found = (one for one in self.comparison.verdicts if one.profile == point.profile.name)
        return next(found, None)

    @property
    def best_yaml(self) -> str:
        """The best point as a profile for hosts.yaml; empty where none was measured."""
        best = self.best
        if best is None:
            return ""
        verdict = self.verdict(best)
        told = "" if verdict is None else verdict.words
        lines = [comment(f"The best of {len(self.points)} points of a sweep. {told}".rstrip())]
        lines += [f"{scalar(best.profile.name)}:", f"  extends: {scalar(self.base.name)}"]
        for field, values in overlay(self.base, best).items():
            lines.append(f"  {field}:")
            lines += [f"    {scalar(name)}: {handed_on(value)}" for name, value in values.items()]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The result as the ``sweep --json`` document's body."""
        best = self.best
        return {
            **self.comparison.to_dict(),
            "base": self.base.name,
            "vary": {axis.key: list(axis.values) for axis in self.axes},
            "points": [
                {
                    "profile": point.profile.name,
                    "values": dict(point.values),
                    "tok_s": self.restarts(point).mean_tok_s,
                }
                for point in self.points
            ],
            "best": None if best is None else best.profile.name,
            "best_profile": self.best_yaml or None,
        }

    def view(self) -> View:
        """A row a point, and the best one as a profile."""
        heads = [*(Column(axis.short, wrap=False) for axis in self.axes)]
        columns = (*heads, Column("tok/s", "right"), Column("against the base", "right"))
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (*map(_shown, point.values.values()), self._speed(point), self._change(point))
            for point in self.points
        )
        table = Table(columns, rows, title=f"{self.comparison.host}: {self.base.name}, varied")
        inner = self.comparison.view()
        notes = tuple(note for note in inner.notes if note.tone is Tone.WARNING)
        if self.best_yaml:
            notes = (*notes, Text(self.best_yaml.rstrip("\n")))
        return View((table, *inner.tables[1:]), self._conclusion(), notes)

    def _repr_html_(self) -> str:
        return self.view().to_html()

    def _speed(self, point: Point) -> Text:
        speed = self.restarts(point).mean_tok_s
        if speed is None:
            return Text("not measured", Tone.WARNING)
        return Text(f"{speed:.1f}", Tone.GOOD if point is self.best else Tone.PLAIN)

    def _change(self, point: Point) -> str:
        verdict = self.verdict(point)
        if verdict is None or verdict.difference is None:
            return ""
        told = verdict.difference
        if told.low_pct is None or told.high_pct is None:
            return f"{told.change_pct:+.1f} %"
        return f"{told.change_pct:+.1f} % ({told.low_pct:+.1f} to {told.high_pct:+.1f})"

    def _conclusion(self) -> Text:
        best = self.best
        if best is None:
            return Text("No point was measured.", Tone.BAD)
        verdict = self.verdict(best)
        words = "" if verdict is None else verdict.words
        values = ", ".join(f"{key}={_shown(value)}" for key, value in best.values.items())
        return Text(f"The best of {len(self.points)} points: {values}. {words}".rstrip())


def sweep(
    machine: Machine,
    base: Profile,
    axes: Sequence[Axis],
    protocol: Protocol | None = None,
    *,
    ledger: Path | None = None,
    **settings: Any,
) -> SweepResult:
    """Measures every point of a grid, and ``base`` as it is, by one protocol.

    Args:
        machine: Where.
        base: The profile whose values are varied.
        axes: Which values.
        protocol: How.
        ledger: The ledger's file; None for the user's own.
        settings: As :func:`eagleops.workflows.compare.compare` takes them.

    Raises:
        UsageError, ProfileError: before anything is touched.
        CheckFailed, Unreachable: as :func:`eagleops.workflows.compare.compare`.
    """
    points = grid(base, axes)
    chosen = protocol or Protocol()
    meant = {*chosen.meant, *(axis.key for axis in axes)}
    result = compare(
        machine,
        [base, *(point.profile for point in points)],
        attrs.evolve(chosen, meant=tuple(sorted(meant))),
        ledger=ledger,
        **settings,
    )
    swept = SweepResult(base=base, axes=tuple(axes), points=points, comparison=result)
    return attrs.evolve(swept, comparison=attrs.evolve(result, heat_map=heat_map(swept)))


def write_profile(result: SweepResult, file: Path) -> None:
    """Writes the best point's profile to a file, as it goes under ``profiles:``.

    Raises:
        UsageError: if it cannot be written.
    """
    try:
        file.write_text(result.best_yaml, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            problem=f"the profile cannot be written: {error.strerror}", where=str(file)
        ) from error


def heat_map(result: SweepResult) -> HeatMap | None:
    """The speed by the values of two axes; None for any other number of them."""
    if len(result.axes) != _PLANE:
        return None
    row, column = result.axes
    speeds = {
        tuple(point.values.values()): result.restarts(point).mean_tok_s for point in result.points
    }
    return HeatMap(
        row.short,
        column.short,
        tuple(map(_shown, row.values)),
        tuple(map(_shown, column.values)),
        tuple(tuple(speeds.get((r, c)) for c in column.values) for r in row.values),
    )


def _shown(value: str | bool | None) -> str:
    return "not given" if value is None else "on" if value is True else str(value)
