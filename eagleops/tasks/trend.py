"""The command on a figure's history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.command import HOST_HELP, Call, command
from eagleops.tasks.ledger import RUN

if TYPE_CHECKING:
    from eagleops.workflows.trend import TrendReport


@command(
    help={
        **HOST_HELP,
        "profile": "whose runs (hosts.yaml's default profile without)",
        "metric": "tok_s, ttft_ms, accept_length, cycle_ms or ready_s",
        "limit": "how many runs, the latest",
        "pin": f"the latest run must keep up with this one: {RUN}",
        "smallest": "the smallest change that counts, in percent",
        "report": "write the history and its plot to this HTML file",
    }
)
def trend(
    call: Call,
    profile: str | None = None,
    host: str | None = None,
    metric: str = "tok_s",
    limit: int = 120,
    pin: str | None = None,
    smallest: float = 3.0,
    report: str | None = None,
) -> TrendReport:
    """How a figure of a profile moved over its runs, when it changed, and what else did then."""
    from pathlib import Path

    import attrs

    from eagleops.workflows.trend import trend as follow

    inventory = call.library().inventory
    if host in inventory.groups:
        inventory.target(host)  # refused, with its members
    # What ran under a name that hosts.yaml no longer has can still be looked at.
    result = follow(
        inventory.ledger,
        profile or inventory.profile().name,
        host or inventory.target(inventory.defaults.host).name,
        metric=metric,
        limit=limit,
        pin=pin,
        smallest_pct=smallest,
        profiles=inventory.profile_names(),
        hosts=(*inventory.hosts, *inventory.containers),
    )
    if report is None:
        return result
    from eagleops.render.nightly import trend_page

    trend_page.write(result, Path(report))
    return attrs.evolve(result, report=report)
