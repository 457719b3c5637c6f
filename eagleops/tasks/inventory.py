"""Commands on the inventory and on the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.errors import UsageError
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
    from eagleops.profile.values import PORTS

    if port > PORTS[-1]:
        problem = f"--port takes a number from {PORTS[0]} to {PORTS[-1]}, not {port}"
        raise UsageError(problem=problem)
    library = call.library()
    machine = library.host(host)
    if library.inventory.defaults.profile is None:
        # A machine is looked at before the first profile for it is written.
        return machine.doctor(port=port or None)
    profile = library.profile()
    # The embedded box needs no model where a profile says that one is.
    real = getattr(machine.machine.entry, "transport", "") != "sim"
    model = profile.model if real and (profile.model or "").startswith("/") else None
    return machine.doctor(port=port or profile.port, paths=[model] if model else [])
