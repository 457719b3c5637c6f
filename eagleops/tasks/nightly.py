"""The nightly checks: one night, its plan, or the timer that starts it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eagleops.tasks.api_key import api_key
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

        _whole_suite(nights.suite.name, {"--host": host is not None, "--fresh": fresh})
        planned = timer.plan(nights.inventory, nights.suite)
        return planned if dry_run else timer.install(planned)
    hosts = [] if host is None else [host]
    if dry_run:
        return nights.plan(hosts)
    with nullcontext(unwatched) if quiet else call.progress() as progress:
        report = nights.run(
            hosts,
            fresh=fresh,
            api_key=api_key(),
            progress=progress,
        )
    is_news = report.changed or not (report.ok and report.is_told)
    return None if quiet and not is_news and not call.json else report


def _whole_suite(suite: str, given: Mapping[str, bool]) -> None:
    """Refuses what a timer would not heed.

    Raises:
        UsageError: then.
    """
    from eagleops.errors import UsageError

    for flag in (flag for flag, is_there in given.items() if is_there):
        raise UsageError(
            problem=f"--install-timer is for the whole suite {suite}: {flag} would not be heeded",
            way_out="Leave it out; a suite of hosts.yaml can be of one host, with its own timer.",
        )
