"""A trial: one restart of one profile's server, condensed to one figure. Pure.

What is left out of a verdict is left out by these rules, and said:

* A request during which a GPU was slowed down does not count.
* A restart in which half of its requests or more were slowed down does not count at all.
* Where it was asked for, slowed requests count after all, with a note.
* A restart whose environment was proved wrong or missing does not count. Where a witness was
  blind it does, with a note.
* A restart whose server died, or that was not measured, does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Trial:
    """One restart.

    Attributes:
        restart: Its number within its profile, from 1.
        run_id: In the ledger; None where it is not recorded.
        tok_s: The median of its requests that count; None where none do.
        requests: Every request's speed, in order; ``throttled`` which of them were slowed down.
        accept_length, cycle_ms: Of its requests; None without speculation.
        excluded: Why it does not count; empty where it does.
        notes: What is to be known of it besides.
        parts: What the ledger holds of it.
    """

    profile: str
    restart: int
    run_id: int | None = None
    tok_s: float | None = None
    requests: tuple[float, ...] = ()
    throttled: tuple[bool, ...] = ()
    ttft_ms: float | None = None
    accept_length: float | None = None
    cycle_ms: float | None = None
    excluded: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: Mapping[str, Any] = attrs.field(factory=dict, repr=False, eq=False)

    @property
    def counts(self) -> bool:
        """Whether it is part of the verdict."""
        return not self.excluded

    @classmethod
    def of_parts(
        cls,
        profile: str,
        restart: int,
        parts: Mapping[str, Any],
        run_id: int | None = None,
        *,
        keep_throttled: bool = False,
    ) -> Trial:
        """A trial from what was recorded of its run.

        Args:
            profile: Its name.
            restart: From 1.
            parts: As :data:`eagleops.ledger.run.PARTS` names them.
            run_id: In the ledger.
            keep_throttled: Let slowed requests count, as where a power limit always holds.
        """
        measured = [one for one in parts.get("samples") or () if "throttled" in one]
        bench = parts.get("bench") or {}
        slowed = sum(bool(one["throttled"]) for one in measured)
        whole = [float(one["tok_s"]) for one in measured if keep_throttled or not one["throttled"]]
        environment = parts.get("environment")
        excluded = [*environment_faults(environment)]
        told = (str(note) for note in bench.get("notes") or ())
        notes = [*_environment_notes(environment), *told]
        if not measured:
            excluded.append("not measured")
        elif keep_throttled and slowed:
            notes.append(f"{slowed} of {len(measured)} requests throttled, and kept")
        elif 2 * slowed >= len(measured):
            excluded.append(f"throttled in {slowed} of {len(measured)} requests")
        elif slowed:
            notes.append(f"{slowed} of {len(measured)} requests left out: throttled")
        return cls(
            profile=profile,
            restart=restart,
            run_id=run_id,
            tok_s=statistics.median(whole) if whole else None,
            requests=tuple(float(one["tok_s"]) for one in measured),
            throttled=tuple(bool(one["throttled"]) for one in measured),
            ttft_ms=_number(bench.get("ttft_ms")),
            accept_length=_number(bench.get("accept_length")),
            cycle_ms=_number(bench.get("cycle_ms")),
            excluded=tuple(excluded),
            notes=tuple(notes),
            parts=dict(parts),
        )

    def to_dict(self) -> dict[str, Any]:
        """The trial as JSON."""
        fields = attrs.asdict(self, filter=lambda field, _: field.name != "parts")
        return {k: list(v) if isinstance(v, tuple) else v for k, v in fields.items()}


@attrs.frozen
class Restarts:
    """All restarts of one profile."""

    profile: str
    trials: tuple[Trial, ...]

    @property
    def counted(self) -> tuple[Trial, ...]:
        """Those that are part of the verdict."""
        return tuple(trial for trial in self.trials if trial.counts and trial.tok_s)

    @property
    def figures(self) -> tuple[float, ...]:
        """One speed a restart."""
        return tuple(trial.tok_s for trial in self.counted if trial.tok_s is not None)

    @property
    def mean_tok_s(self) -> float | None:
        """What is compared; None where no restart counts."""
        return statistics.fmean(self.figures) if self.figures else None

    @property
    def accept_length(self) -> float | None:
        """The mean of the restarts'; None without speculation."""
        return _mean([trial.accept_length for trial in self.counted])

    @property
    def cycle_ms(self) -> float | None:
        """The mean of the restarts'; None without speculation."""
        return _mean([trial.cycle_ms for trial in self.counted])

    def to_dict(self) -> dict[str, Any]:
        """As in ``compare --json``: ``profiles[]``."""
        figures = self.figures
        return {
            "profile": self.profile,
            "tok_s": {
                "mean": self.mean_tok_s,
                "median": statistics.median(figures) if figures else None,
                "low": min(figures, default=None),
                "high": max(figures, default=None),
                "samples": list(figures),
            },
            "accept_length": self.accept_length,
            "cycle_ms": self.cycle_ms,
            "run_id": next((t.run_id for t in reversed(self.trials) if t.run_id), None),
            "run_ids": [trial.run_id for trial in self.trials if trial.run_id is not None],
            "excluded": [
                {"restart": trial.restart, "run_id": trial.run_id, "reasons": list(trial.excluded)}
                for trial in self.trials
                if trial.excluded
            ],
            "trials": [trial.to_dict() for trial in self.trials],
        }


def environment_faults(report: Any) -> tuple[str, ...]:
    """Why a run says nothing of its profile: what its workers' environment was proved to lack.

    Args:
        report: The run's ``environment`` part; anything else proves nothing.
    """
    if not isinstance(report, Mapping):
        return ()
    counts = report.get("counts") or {}
    wrong = [f"{counts[kind]} {kind}" for kind in ("wrong", "missing") if counts.get(kind)]
    if report.get("missing_workers"):
        wrong.append(f"{len(report['missing_workers'])} workers not there")
    return (f"environment: {', '.join(wrong)}",) if wrong else ()


def _environment_notes(report: Any) -> tuple[str, ...]:
    """What an environment's verdict leaves open."""
    if not isinstance(report, Mapping):
        return ("its environment was not verified",)
    unknown = (report.get("counts") or {}).get("unknown")
    if unknown and not environment_faults(report):
        return (f"environment: {unknown} unknown, a witness was blind",)
    return ()


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _mean(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return statistics.fmean(told) if told else None
