"""One look at a machine: its GPUs, who holds them, its servers; and the plan for a reset."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import cattrs

from eagleops.gpu import Gpu
from eagleops.process import Judgement, Process, Viewpoint, bystander, judge
from eagleops.remote.driver_faults import LOST_GPU
from eagleops.server import ServerFacts

_CONVERTER = cattrs.Converter()

SHORT_ID_LENGTH = 12


@attrs.frozen
class MachineFacts:
    """The machine that was looked at, and where the looker stood on it.

    Attributes:
        time_utc: When it was looked at, by the machine's own clock (RFC 3339).
        pid_ns: The inode of the looker's PID namespace.
        container: The looker's own container, where its cgroup tells one.
        unreadable_processes: Processes whose open files the looker may not see.
    """

    hostname: str
    boot_id: str
    time_utc: str
    kernel: str
    python: str
    user: str
    uid: int
    pid_ns: int | None = None
    container: str | None = None
    clock_ticks: int = 100
    unreadable_processes: int = 0


@attrs.frozen
class Snapshot:
    """A machine at one moment.

    Attributes:
        gpu_source: ``nvml``, ``nvidia-smi`` or ``none``.
        gpu_problem: What kept the GPUs from being read whole, and the way out; None for nothing.
        driver_found: Whether anything of a driver is on the machine: if not it shows no GPU for a
            reason, where one that does not answer may hide some.
        processes: Holders of GPU device files, processes in a GPU's list, and the trees of
            launched servers.
        viewpoint: Where the target stands: on the machine itself, or in a container of it.
        neighbours: Holders that stand elsewhere than a container that this look is narrowed to.
    """

    machine: MachineFacts
    gpu_source: str
    gpu_problem: str | None
    driver_version: str | None
    gpus: tuple[Gpu, ...]
    processes: tuple[Process, ...]
    servers: tuple[ServerFacts, ...]
    viewpoint: Viewpoint
    neighbours: tuple[Process, ...] = ()
    driver_found: bool = True

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Snapshot:
        """A snapshot from the JSON of the operation of that name."""
        machine = _CONVERTER.structure(data["machine"], MachineFacts)
        return cls(
            machine,
            data["gpu_source"],
            data["gpu_problem"],
            data["driver_version"],
            tuple(map(Gpu.from_dict, data["gpus"])),
            tuple(map(Process.from_dict, data["processes"])),
            tuple(map(ServerFacts.from_dict, data["servers"])),
            Viewpoint(machine.uid, machine.user, machine.container, pid_ns=machine.pid_ns),
            driver_found=data["driver_found"],
        )

    @property
    def gpus_are_hidden(self) -> bool:
        """Whether a driver is there and shows no GPU: what it does not tell is not "none"."""
        return self.driver_found and not self.gpus

    @property
    def a_gpu_is_lost(self) -> bool:
        """Whether the driver said that it has lost a GPU: that one is not among :attr:`gpus`."""
        return LOST_GPU in (self.gpu_problem or "")

    def holders_of(self, gpu: Gpu) -> tuple[Process, ...]:
        """The processes that have the GPU's device file open."""
        return tuple(process for process in self.processes if gpu.index in process.gpu_devices)


@attrs.frozen
class ResetPlan:
    """What a reset ends and what it spares, each with its reason."""

    kill: tuple[Judgement, ...]
    spare: tuple[Judgement, ...]


def plan_reset(snapshot: Snapshot) -> ResetPlan:
    """What a reset of the snapshot's target may end, by the rules of :mod:`eagleops.process`."""
    seen = (*snapshot.processes, *snapshot.neighbours)
    judgements = [judge(process, snapshot.viewpoint) for process in seen]
    return ResetPlan(
        tuple(judgement for judgement in judgements if judgement.kill),
        tuple(judgement for judgement in judgements if not judgement.kill),
    )


def idle_levels(
    snapshot: Snapshot, idle_mib: int, spare: Iterable[Judgement] = ()
) -> dict[str, int]:
    """The memory at which each GPU counts as idle, in MiB by its index.

    Args:
        snapshot: The GPUs.
        idle_mib: What an unused GPU of this machine holds at most.
        spare: Who keeps running: what the driver tells of their memory is added.
    """
    levels = {}
    spared = tuple(judgement.process for judgement in spare)
    for gpu in snapshot.gpus:
        kept = (process.gpu_mib.get(gpu.uuid or "") for process in spared)
        levels[str(gpu.index)] = idle_mib + sum(mib for mib in kept if mib is not None)
    return levels


def held_without_holder(snapshot: Snapshot, idle_mib: int) -> tuple[Gpu, ...]:
    """The GPUs whose memory is held while nothing that was seen can hold it.

    In a container that means: ask the host. A bystander (a monitor, say) with the device
    file open explains nothing.
    """
    return tuple(
        gpu
        for gpu in snapshot.gpus
        if gpu.holds_more_than(idle_mib) and all(map(bystander, snapshot.holders_of(gpu)))
    )


def container_processes(host: Snapshot, container: str) -> Snapshot:
    """A host's look, narrowed to one of its containers; PIDs and GPUs stay the host's.

    Args:
        host: What the host saw.
        container: As the cgroup names it: a vmid, a name, or a docker id of any length.
    """
    inside = tuple(p for p in host.processes if _is_named(p.container, container))
    outside = tuple(p for p in host.processes if not _is_named(p.container, container))
    named = inside[0].container if inside else container
    # Its own namespace is the outermost below the host's; an attached process may have the host's.
    depth = min((len(process.nspid) for process in inside if process.nspid[1:]), default=1)
    viewpoint = attrs.evolve(host.viewpoint, container=named, depth=depth, pid_ns=None)
    return attrs.evolve(host, processes=inside, neighbours=outside, servers=(), viewpoint=viewpoint)


def _is_named(seen: str | None, container: str) -> bool:
    """Whether a cgroup's name is that container's; of a docker id it tells the begin alone."""
    is_id = re.fullmatch(r"[0-9a-f]{64}", container) is not None
    return seen == container or (is_id and seen == container[:SHORT_ID_LENGTH])
