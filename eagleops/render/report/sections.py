"""What stands in a report beside its plots: tables and commands, as plain data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.ledger import Header, Run
from eagleops.ledger.diff import Change, diff
from eagleops.ledger.lines import TITLES
from eagleops.workflows.compare_result import CompareResult

Parts = Mapping[str, Any]
Recorded = Mapping[tuple[str, int], Parts]

_VERDICTS = ("ok", "wrong", "missing", "unknown")
# Variables that every launch has, and that nobody compares.
_MOST_CHANGES = 60


@attrs.frozen
class Variable:
    """One variable of a profile over all its restarts.

    Attributes:
        verdicts: How often each verdict was given, over restarts and processes.
    """

    name: str
    expected: str
    verdicts: Mapping[str, int]

    @property
    def worst(self) -> str:
        """The verdict that matters."""
        found = [kind for kind in ("wrong", "missing", "unknown") if self.verdicts.get(kind)]
        return found[0] if found else "ok"


@attrs.frozen
class Environment:
    """A profile's environment."""

    profile: str
    variables: tuple[Variable, ...]


@attrs.frozen
class Command:
    """What a profile's servers were started with, word for word."""

    profile: str
    argv: str
    env: tuple[str, ...]


@attrs.frozen
class Changes:
    """What differs between the last run of the baseline and that of another profile."""

    profile: str
    before: str
    after: str
    changes: tuple[tuple[str, Change], ...]
    more: int
    same: int


@attrs.frozen
class Sections:
    """All of them."""

    environments: tuple[Environment, ...]
    commands: tuple[Command, ...]
    changes: tuple[Changes, ...]
    machine: tuple[tuple[str, str], ...]


def sections_of(result: CompareResult, recorded: Recorded) -> Sections:
    """The sections of a result, from what was recorded of its restarts."""
    by_profile = {
        one.profile: [recorded[trial.profile, trial.restart] for trial in one.trials]
        for one in result.restarts
    }
    return Sections(
        tuple(Environment(name, tuple(_variables(parts))) for name, parts in by_profile.items()),
        tuple(_commands(by_profile)),
        tuple(_changes(result, recorded)),
        tuple(_machine([parts for many in by_profile.values() for parts in many])),
    )


def _variables(runs: Sequence[Parts]) -> Iterator[Variable]:
    expected: dict[str, str] = {}
    counted: dict[str, dict[str, int]] = {}
    for parts in runs:
        report = parts.get("environment") or {}
        for name, value in (report.get("expected") or {}).items():
            expected[name] = "(not set)" if value is None else str(value)
        for process in report.get("processes") or ():
            if not process.get("counted", True):
                continue
            for name, variable in process["variables"].items():
                kinds = counted.setdefault(name, dict.fromkeys(_VERDICTS, 0))
                kinds[variable["verdict"]] += 1
    for name in sorted(expected):
        yield Variable(name, expected[name], counted.get(name, {}))


def _commands(by_profile: Mapping[str, Sequence[Parts]]) -> Iterator[Command]:
    for name, runs in by_profile.items():
        spec: Mapping[str, Any] = next((p["spec"] for p in reversed(runs) if p.get("spec")), {})
        if spec:
            env = spec.get("env") or {}
            lines = tuple(f"{key}={shlex.quote(str(value))}" for key, value in sorted(env.items()))
            yield Command(name, _wrapped(spec.get("argv") or ()), lines)


def _wrapped(argv: Sequence[str]) -> str:
    """A command with each flag on a line of its own; still one that a shell takes."""
    lines: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("--") and lines[-1]:
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return " \\\n  ".join(" ".join(line) for line in lines)


def _changes(result: CompareResult, recorded: Recorded) -> Iterator[Changes]:
    last = {one.profile: one.counted[-1] for one in result.restarts if one.counted}
    baseline = last.get(result.restarts[0].profile)
    if baseline is None:
        return
    before = _run(
        result, baseline.profile, baseline.run_id, recorded[baseline.profile, baseline.restart]
    )
    for one in result.restarts[1:]:
        trial = last.get(one.profile)
        if trial is None:
            continue
        after = _run(result, trial.profile, trial.run_id, recorded[trial.profile, trial.restart])
        told = diff(before, after)
        rows = tuple((TITLES[change.section], change) for change in told.changes)
        yield Changes(
            one.profile,
            _run_name(baseline.profile, baseline.run_id),
            _run_name(trial.profile, trial.run_id),
            rows[:_MOST_CHANGES],
            max(0, len(rows) - _MOST_CHANGES),
            sum(told.unchanged.values()),
        )


def _run(result: CompareResult, profile: str, run_id: int | None, parts: Parts) -> Run:
    engine = next(one.engine for one in result.profiles if one.name == profile)
    header = Header(host=result.host, server=profile, profile=profile, engine=engine, id=run_id)
    known = {name: body for name, body in parts.items() if name != "comparison"}
    return Run.begin(header, known)


def _run_name(profile: str, run_id: int | None) -> str:
    return profile if run_id is None else f"{profile}, run {run_id}"


def _machine(runs: Sequence[Parts]) -> Iterator[tuple[str, str]]:
    """What the machine is, by the first run that tells it."""
    snapshot: Parts = next((p["snapshot"] for p in runs if p.get("snapshot")), {})
    machine = snapshot.get("machine") or {}
    for name, heading in (("hostname", "Host"), ("kernel", "Kernel"), ("python", "Python")):
        if machine.get(name):
            yield heading, str(machine[name])
    if snapshot.get("driver_version"):
        yield "GPU driver", str(snapshot["driver_version"])
    names = [str(gpu.get("name")) for gpu in snapshot.get("gpus") or ()]
    for name in dict.fromkeys(names):
        yield "GPUs", f"{names.count(name)} x {name}"
    packages: Parts = next((p["packages"] for p in runs if p.get("packages")), {})
    versions = packages.get("distributions") or {}
    for name in ("sglang", "vllm", "torch"):
        found = versions.get(name) if isinstance(versions, Mapping) else None
        if isinstance(found, str):
            yield name, found
