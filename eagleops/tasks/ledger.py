"""Commands on the ledger: what worked before, as a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.command import HOST_HELP, Call, command

if TYPE_CHECKING:
    from eagleops.ledger.diff import RunDiff
    from eagleops.workflows.recipe import Recipe
    from eagleops.workflows.reproduce import ReproducePlan, ReproduceReport
    from eagleops.workflows.runs import RunReport, RunsReport

RUN = "a run's number, or the beginning of its uuid"


@command(
    help={
        "limit": "how many, the latest first",
        "profile": "only those of this profile",
        "host": "only those on this host or container",
    }
)
def runs(
    call: Call, limit: int = 20, profile: str | None = None, host: str | None = None
) -> RunsReport:
    """The latest runs in the ledger."""
    from eagleops.ledger import Ledger
    from eagleops.workflows.runs import list_runs

    with Ledger.open(call.library().inventory.ledger) as ledger:
        return list_runs(ledger, limit=limit, profile=profile, host=host)


@command(help={"run": RUN, "as-profile": "write it out as a profile that is its own recipe"})
def show(call: Call, run: str, as_profile: bool = False) -> RunReport | Recipe:
    """All that was recorded of one run."""
    from eagleops.ledger import Ledger
    from eagleops.workflows.recipe import Recipe
    from eagleops.workflows.runs import run_as_profile, show_run

    with Ledger.open(call.library().inventory.ledger) as ledger:
        shown = show_run(ledger, run)
        if not as_profile:
            return shown
        header = shown.run.header
        return Recipe(header.host, header.id or 0, run_as_profile(ledger, run))


@command(help={"run": RUN, "against": "the run to compare it with: the earlier one, say"})
def diff(call: Call, run: str, against: str) -> RunDiff:
    """What changed between two runs, what matters most first."""
    from eagleops.ledger import Ledger
    from eagleops.workflows.runs import diff_runs

    with Ledger.open(call.library().inventory.ledger) as ledger:
        return diff_runs(ledger, against, run)


@command(
    help={
        **HOST_HELP,
        "run": RUN,
        "name": "the new server's name (the recorded one's without)",
        "dry-run": "say what cannot be the same, and start nothing",
        "timeout": "seconds to wait until it is ready",
    }
)
def reproduce(
    call: Call,
    run: str,
    host: str | None = None,
    name: str | None = None,
    dry_run: bool = False,
    timeout: float = 3600.0,
) -> ReproducePlan | ReproduceReport:
    """Run a recorded run again: the same argv and environment, what cannot be the same told."""
    from eagleops.ledger import Ledger
    from eagleops.server import require_name
    from eagleops.workflows.reproduce import plan_reproduction
    from eagleops.workflows.reproduce import reproduce as start_again

    if name is not None:
        require_name(name)
    library = call.library()
    with Ledger.open(library.inventory.ledger) as ledger:
        recorded = ledger.run(run)
        machine = library.host(host or recorded.header.host).machine
        known = library.inventory.profile_names()
        profile = recorded.header.profile
        today = library.profile(profile) if profile in known else None
        with call.progress() as progress:
            plan = plan_reproduction(machine, recorded, profile=today, progress=progress)
        if dry_run:
            return plan
        if not call.json:
            from eagleops.render.console import stderr

            # Before anything is touched: who reads it can still interrupt.
            stderr().print(plan.view())
        with call.progress() as progress:
            return start_again(
                machine, plan, ledger=ledger, name=name, timeout_s=timeout, progress=progress
            )
