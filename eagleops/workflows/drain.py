"""Drain: wait until GPU memory is at its idle level, and stays there."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from eagleops.errors import CannotTell
from eagleops.gpu import Gpu
from eagleops.machine import Machine
from eagleops.process import Process
from eagleops.snapshot import Snapshot
from eagleops.workflows.progress import Progress, events_of


@attrs.frozen
class Drain:
    """How a wait for GPU memory ended.

    Attributes:
        drained: Whether every GPU that was waited for settled at its idle level.
        drain_s: Seconds to the first of the settled readings; None where it did not drain.
        gpus: The last reading.
        holders: Who held GPU memory when the wait gave up.
    """

    drained: bool
    drain_s: float | None
    gpus: tuple[Gpu, ...]
    holders: tuple[Process, ...] = ()

    @property
    def held(self) -> str:
        """What is still held, in words."""
        used = [f"GPU {gpu.index}: {gpu.used_mib:,} MiB" for gpu in self.gpus if gpu.used_mib]
        by = [f"PID {process.pid} ({process.title})" for process in self.holders]
        return ", ".join(used or ["no reading"]) + (f", by {', '.join(by)}" if by else "")


def require_readable(machine: Machine, snapshot: Snapshot) -> None:
    """Refuses to go on blindly where a driver is there and does not answer.

    Without any driver there is nothing to drain.

    Raises:
        CannotTell: with the driver's problem.
    """
    if snapshot.gpus_are_hidden:
        raise CannotTell(
            problem=f"the GPUs cannot be read: {snapshot.gpu_problem}",
            where=machine.name,
            way_out=f"eagleops doctor --host {machine.name} tells more.",
            host=machine.name,
        )


def drain(
    machine: Machine,
    idle_mib: Mapping[str, int],
    *,
    timeout_s: float,
    progress: Progress,
) -> Drain:
    """Waits for the GPUs that ``idle_mib`` names; one round trip however long it takes.

    Where it names none, nobody is asked.

    Raises:
        OperationFailed: ``gpus_unreadable``.
        Unreachable: if the machine was lost.
    """
    if not idle_mib:
        return Drain(drained=True, drain_s=0.0, gpus=())
    result = machine.call(
        "drain",
        idle_mib=dict(idle_mib),
        timeout_s=timeout_s,
        on_event=events_of("drain", progress),
    )
    return Drain(
        result["drained"],
        result["drain_s"],
        tuple(map(Gpu.from_dict, result["gpus"])),
        tuple(map(Process.from_dict, result.get("holders") or ())),
    )
