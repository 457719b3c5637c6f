"""Who uses a machine's GPUs: what a night must leave alone, and what it may clear away. Pure.

Somebody uses a GPU who has its device file open, unless he is one of these:

* a bystander (:func:`eagleops.process.bystander`): a monitor, a display server, DCGM;
* what a server of eagleops left behind that has ended or was lost: that is stale;
* a server that an earlier night launched and did not live to end.

An orphan that eagleops did not launch counts as a user: a worker whose parent crashed and a
job that somebody left running with nohup look alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import attrs

from eagleops.gpu import Gpu
from eagleops.phrases import some
from eagleops.process import Process, bystander, judge
from eagleops.server import ServerFacts
from eagleops.snapshot import Snapshot, idle_levels, plan_reset
from eagleops.workflows.nightly.gpu_look import AT_WORK_PCT

# What a night calls its servers: the name of their own profile after it.
NIGHTLY = "nightly-"
MOST_NAMED = 4
_NAME_LENGTH = 64


def server_name(profile: str) -> str:
    """What a night calls its server of ``profile``."""
    return f"{NIGHTLY}{profile}"[:_NAME_LENGTH]


def is_of_a_night(server: ServerFacts) -> bool:
    """Whether a night launched it: one that is merely called so has another profile."""
    return server.name == server_name(server.profile)


@attrs.frozen
class Users:
    """Who uses the GPUs.

    Attributes:
        servers: Servers of eagleops that live and hold a GPU, or are about to.
        working: The names of those whose GPUs are at work.
        others: Processes that a reset of this target may end, and that are not stale.
        foreign: Processes that it may not: another container's, say. PIDs are those of
            whoever saw them.
        stale: What servers left behind that have ended, by the server's name.
        unseen: The GPUs whose memory is held by nobody that can be seen.
        levels: The memory at which each GPU counts as free, in MiB by its index: the
            machine's own level, and what bystanders hold.
    """

    servers: tuple[ServerFacts, ...] = ()
    working: tuple[str, ...] = ()
    others: tuple[Process, ...] = ()
    foreign: tuple[Process, ...] = ()
    stale: tuple[tuple[str, tuple[Process, ...]], ...] = ()
    unseen: tuple[Gpu, ...] = ()
    levels: dict[str, int] = attrs.field(factory=dict)

    @property
    def anybody(self) -> bool:
        """Whether the GPUs are used."""
        return bool(self.servers or self.others or self.foreign or self.unseen)

    @property
    def words(self) -> str:
        """Who it is, for people: PID, user, title."""
        told = [*map(_server_words, self.servers), *map(_words, (*self.others, *self.foreign))]
        told += [f"GPU {gpu.index}: {gpu.used_mib:,} MiB by nobody in sight" for gpu in self.unseen]
        return some(told, MOST_NAMED)

    def without(self, others: Users) -> Users:
        """Those that a reset might end, and that are not among ``others``."""
        servers = {server.name for server in others.servers}
        pids = {process.pid for process in others.others}
        return Users(
            servers=tuple(one for one in self.servers if one.name not in servers),
            others=tuple(one for one in self.others if one.pid not in pids),
        )

    def to_dict(self) -> dict[str, Any]:
        """The users as a finding's facts."""
        return {
            "servers": [server.name for server in self.servers],
            "holders": [
                {
                    "pid": process.pid,
                    "user": process.user,
                    "title": process.title or process.comm,
                    "container": process.container,
                    "gpus": list(process.gpu_devices),
                }
                for process in (*self.others, *self.foreign)
            ],
            "unseen_mib": {str(gpu.index): gpu.used_mib for gpu in self.unseen},
        }


def narrowed(look: Snapshot, indices: Collection[int] | None) -> Snapshot:
    """What was seen, as far as it concerns some of the GPUs; None for all of them.

    A process that holds none of them has no GPU in it, and counts as none of their users.
    """
    if indices is None:
        return look
    chosen = frozenset(indices)

    def of_chosen(process: Process) -> Process:
        held = tuple(index for index in process.gpu_devices if index in chosen)
        return attrs.evolve(process, gpu_devices=held)

    elsewhere = {p.server for p in look.processes if p.gpu_devices}
    elsewhere -= {p.server for p in look.processes if chosen.intersection(p.gpu_devices)}
    return attrs.evolve(
        look,
        gpus=tuple(gpu for gpu in look.gpus if gpu.index in chosen),
        processes=tuple(map(of_chosen, look.processes)),
        servers=tuple(server for server in look.servers if server.name not in elsewhere),
    )


def users_of(look: Snapshot, host: Snapshot | None, idle_mib: int) -> Users:
    """Who uses the GPUs of a target.

    Args:
        look: What the target itself sees.
        host: For a container, what its host sees, narrowed to the container
            (:func:`eagleops.snapshot.container_processes`); None where it cannot be asked.
        idle_mib: So much memory in use still counts as an idle GPU.
    """
    alive = {server.name: server for server in look.servers if server.is_alive}
    living = {name: server for name, server in alive.items() if not is_of_a_night(server)}
    holding = {p.server for p in look.processes if p.holds_gpu and p.server in living}
    servers = [s for name, s in living.items() if name in holding or s.state == "starting"]
    others, foreign, stale = _told_apart(look, living)
    beside = () if host is None else tuple(_beside(look, host))
    hidden = () if host is None else tuple(_hidden(look, host))
    explained = set() if host is None else _uuids((*beside, *hidden), host)
    spare = [judged for judged in plan_reset(look).spare if bystander(judged.process)]
    levels = idle_levels(look, idle_mib, spare)
    return Users(
        servers=tuple(servers),
        working=tuple(server.name for server in servers if _at_work(look, server.name)),
        others=(*others, *hidden),
        foreign=(*foreign, *beside),
        stale=tuple((name, tuple(found)) for name, found in stale.items()),
        unseen=tuple(_unseen(look, levels, explained)),
        levels=levels,
    )


def _told_apart(
    look: Snapshot, living: Collection[str]
) -> tuple[list[Process], list[Process], dict[str, list[Process]]]:
    """Who holds a GPU and is of no living server: whom a reset may end, whom not, what is stale."""
    others: list[Process] = []
    foreign: list[Process] = []
    stale: dict[str, list[Process]] = {}
    for process in _holders(look):
        if process.server in living:
            continue
        if not judge(process, look.viewpoint).kill:
            foreign.append(process)
        elif process.server is not None:
            stale.setdefault(process.server, []).append(process)
        else:
            others.append(process)
    return others, foreign, stale


def _unseen(
    look: Snapshot, levels: Mapping[str, int], explained: Collection[str | None]
) -> Iterator[Gpu]:
    """The GPUs with memory in use that neither the target nor its host has a holder for."""
    seen = {index for process in _holders(look) for index in process.gpu_devices}
    for gpu in look.gpus:
        held = gpu.index in seen or gpu.uuid in explained
        if not held and gpu.holds_more_than(levels[str(gpu.index)]):
            yield gpu


def _holders(look: Snapshot) -> tuple[Process, ...]:
    return tuple(p for p in look.processes if p.holds_gpu and not bystander(p))


def _beside(look: Snapshot, host: Snapshot) -> Iterator[Process]:
    """Who holds the container's GPUs from outside of it."""
    indices = _shared(look, host)
    for process in host.neighbours:
        if indices.intersection(process.gpu_devices) and not bystander(process):
            yield process


def _hidden(look: Snapshot, host: Snapshot) -> Iterator[Process]:
    """Who is in the container, and is seen by its host alone; a reset ends him from there."""
    known = {process.pid for process in look.processes}
    for process in _holders(host):
        if process.container_pid not in known:
            yield process


def _shared(look: Snapshot, host: Snapshot) -> set[int]:
    """The container's GPUs, as its host counts them."""
    shared = {gpu.uuid for gpu in look.gpus if gpu.uuid}
    return {gpu.index for gpu in host.gpus if gpu.uuid in shared}


def _uuids(processes: Iterable[Process], host: Snapshot) -> set[str | None]:
    held = {index for process in processes for index in process.gpu_devices}
    return {gpu.uuid for gpu in host.gpus if gpu.index in held}


def _at_work(look: Snapshot, server: str) -> bool:
    mine = {i for p in look.processes if p.server == server for i in p.gpu_devices}
    return any(gpu.index in mine and (gpu.utilization_pct or 0) >= AT_WORK_PCT for gpu in look.gpus)


def _words(process: Process) -> str:
    whose = f", {process.user}" if process.user else ""
    where = f", container {process.container}" if process.container else ""
    return f"PID {process.pid} ({process.title or process.comm}{whose}{where})"


def _server_words(server: ServerFacts) -> str:
    return f"server {server.name} ({server.state}, PID {server.pid})"
