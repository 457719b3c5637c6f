"""Commands on a machine's GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.command import HOST_HELP, Call, command

if TYPE_CHECKING:
    from eagleops.workflows.reset import ResetReport
    from eagleops.workflows.status import StatusReport


@command(help=HOST_HELP)
def status(call: Call, host: str | None = None) -> StatusReport:
    """GPUs, who holds them, and the servers with their state."""
    return call.host(host).status()


@command(
    help={
        **HOST_HELP,
        "dry-run": "show what would be killed and what spared, with the reasons; touch nothing",
        "timeout": "seconds to wait for GPU memory to drain",
        "grace": "seconds between SIGTERM and SIGKILL",
    }
)
def reset_gpus(
    call: Call,
    host: str | None = None,
    dry_run: bool = False,
    timeout: float = 60.0,
    grace: float = 5.0,
) -> ResetReport:
    """Kill what is stale, wait until GPU memory has drained, prove it."""
    with call.progress() as progress:
        return call.host(host).reset_gpus(
            dry_run=dry_run, timeout_s=timeout, grace_s=grace, progress=progress
        )
