"""Comparing profiles on a host, and writing the report of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.comparison.grid import Axis
from eagleops.library.host import Host
from eagleops.profile import Profile
from eagleops.workflows.compare import compare as run_comparison
from eagleops.workflows.compare_plan import ComparePlan, Protocol, plan_comparison
from eagleops.workflows.compare_result import CompareResult
from eagleops.workflows.sweep import SweepResult
from eagleops.workflows.sweep import sweep as run_sweep


def compare(
    host: Host,
    profiles: Sequence[str | Profile],
    protocol: Protocol | None = None,
    *,
    report: str | Path | None = None,
    **settings: Any,
) -> CompareResult:
    """Compares profiles on a host, the first being what the others are measured by.

    Args:
        host: Where.
        profiles: Names of the inventory's profiles, or profiles.
        protocol: How; five restarts of each without one.
        report: Write the report to this HTML file.
        settings: As :func:`eagleops.workflows.compare.compare` takes them.

    Raises:
        UsageError, ProfileError: before anything is touched; so if the packages of a report
            that was asked for are not installed.
        CheckFailed, Unreachable: as :func:`eagleops.workflows.compare.compare`.
    """
    if report is not None:
        from eagleops.render.report import ready

        ready(Path(report))  # before hours of measuring that could not be shown
    chosen = _chosen(host, profiles)
    result = run_comparison(host.machine, chosen, protocol, ledger=host.ledger, **settings)
    return result if report is None else write_report(result, report)


def write_report(result: CompareResult, file: str | Path) -> CompareResult:
    """Writes a comparison's report; gives the result with the report's place in it.

    Raises:
        UsageError: if it cannot be written.
    """
    from eagleops.render.report import write

    path = Path(file)
    reported = attrs.evolve(result, report=str(path))
    write(reported, path)
    return reported


def sweep(
    host: Host,
    profile: str | Profile,
    vary: Sequence[str | Axis],
    protocol: Protocol | None = None,
    *,
    report: str | Path | None = None,
    **settings: Any,
) -> SweepResult:
    """Measures a grid over a profile's values: see :func:`eagleops.workflows.sweep.sweep`.

    Args:
        host: Where.
        profile: Whose values are varied.
        vary: ``args.speculative-num-steps=1,2,3`` and the like.
        protocol: How.
        report: Write the report to this HTML file.
        settings: As :func:`eagleops.workflows.compare.compare` takes them.

    Raises:
        UsageError, ProfileError, CheckFailed, Unreachable: as :func:`compare`.
    """
    if report is not None:
        from eagleops.render.report import ready

        ready(Path(report))
    axes = [Axis.parse(one) if isinstance(one, str) else one for one in vary]
    base = host.profile(profile) if isinstance(profile, str) else profile
    result = run_sweep(host.machine, base, axes, protocol, ledger=host.ledger, **settings)
    if report is None:
        return result
    return attrs.evolve(result, comparison=write_report(result.comparison, report))


def plan(
    host: Host, profiles: Sequence[str | Profile], protocol: Protocol | None = None
) -> ComparePlan:
    """What :func:`compare` is going to do, and what is not fair in it. Asks no machine.

    Raises:
        UsageError, ProfileError: as there.
    """
    chosen = _chosen(host, profiles)
    entry = host.machine.entry
    return plan_comparison(host.name, entry.python, chosen, protocol or Protocol())


def _chosen(host: Host, profiles: Sequence[str | Profile]) -> list[Profile]:
    named = [profiles] if isinstance(profiles, str) else profiles
    return [host.profile(one) if isinstance(one, str) else one for one in named]
