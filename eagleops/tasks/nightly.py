"""The nightly checks: one night, its plan, or the timer that starts it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from eagleops.tasks.command import Call, command

if TYPE_CHECKING:
    from eagleops.workflows.nightly.plan import NightPlan
    from eagleops.workflows.nightly.report import NightReport
    from eagleops.workflows.timer import TimerPlan


@command(
    help={
        "suite": "a suite of hosts.yaml (`default`, or the only one, without)",
        "host": "of the suite's hosts (or groups), this one alone",
        "quiet": "print nothing where nothing began, ended or failed",
        "fresh": "begin a new night where one was cut off; what that one left is put right",
        "dry-run": "say what would be done; with --install-timer, print the units",
        "install-timer": "have systemd start this suite by its schedule",
    }
)
def nightly(
    call: Call,
    suite: str | None = None,
    host: str | None = None,
    quiet: bool = False,
    fresh: bool = False,
    dry_run: bool = False,
    install_timer: bool = False,
) -> NightReport | NightPlan | TimerPlan | None:
    """The scripted checks of a suite: report files, exit status, message; history kept."""
    from contextlib import nullcontext

    from eagleops.workflows.progress import unwatched

    nights = call.library().nightly(suite)
    if install_timer:
        from eagleops.workflows import timer

        planned = timer.plan(nights.inventory, nights.suite)
        return planned if dry_run else timer.install(planned)
    hosts = [] if host is None else [host]
    if dry_run:
        return nights.plan(hosts)
    with nullcontext(unwatched) if quiet else call.progress() as progress:
        report = nights.run(
            hosts,
            fresh=fresh,
            api_key=os.environ.get("EAGLEOPS_API_KEY"),
            progress=progress,
        )
    silent = quiet and report.ok and not report.changed and not call.json
    return None if silent else report
