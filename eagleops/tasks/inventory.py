"""Commands on the inventory and on the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.command import HOST_HELP, Call, command

if TYPE_CHECKING:
    from eagleops.workflows.doctor import DoctorReport
    from eagleops.workflows.listing import Listing


@command()
def hosts(call: Call) -> Listing:
    """List hosts, containers, groups, profiles and nightly suites of hosts.yaml."""
    from eagleops.workflows.listing import listing

    return listing(call.library().inventory)


@command(
    help={**HOST_HELP, "port": "a port that should be free (the default profile's without)"},
)
def doctor(call: Call, host: str | None = None, port: int = 0) -> DoctorReport:
    """Check the way in and the machine: SSH, python3, driver, container, disk, P2P, limits."""
    library = call.library()
    profile = library.profile()
    machine = library.host(host)
    # The embedded box needs no model where a profile says that one is.
    real = getattr(machine.machine.entry, "transport", "") != "sim"
    model = profile.model if real and (profile.model or "").startswith("/") else None
    return machine.doctor(port=port or profile.port, paths=[model] if model else [])
