"""Stop: end a server's whole tree, then wait until the GPUs have drained."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.errors import CheckFailed, Unreachable, UsageError
from eagleops.machine import Machine
from eagleops.process import Judgement
from eagleops.server import ServerFacts, require_name
from eagleops.snapshot import Snapshot, container_processes, idle_levels, plan_reset
from eagleops.view import Text, Tone, View
from eagleops.workflows.drain import Drain, drain
from eagleops.workflows.progress import Progress, events_of, unwatched


@attrs.frozen
class StopReport:
    """A server that was ended.

    Attributes:
        killed: ``pid``, ``signal`` and ``gone_s`` of each process that had to be signalled.
        tree: How many processes it had.
        left: What could not be ended: ``pid``, ``state``, ``reason``.
        drain: How the wait for the memory of its GPUs ended.
        already_exited: Whether there was nothing of it to end.
    """

    host: str
    server: ServerFacts
    killed: tuple[dict[str, Any], ...]
    left: tuple[dict[str, Any], ...]
    tree: int
    drain: Drain
    already_exited: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing of it is left, in memory or on a GPU."""
        return self.drain.drained and not self.left

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``stop --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "server": self.server.to_dict(),
            "already_exited": self.already_exited,
            "killed": list(self.killed),
            "left": list(self.left),
            "drained": self.drain.drained,
            "drain_s": self.drain.drain_s,
            "gpus": [gpu.to_dict() for gpu in self.drain.gpus],
        }

    def view(self) -> View:
        """One line."""
        head = f"{self.host}: {self.server.name}"
        if self.left:
            stuck = ", ".join(f"PID {one['pid']} ({one['reason']})" for one in self.left)
            return View(conclusion=Text(f"{head}: could not be killed: {stuck}", Tone.BAD))
        if self.already_exited:
            how = (
                f"signal {self.server.signal}"
                if self.server.signal
                else (f"exit status {self.server.exit_status}")
            )
            since = f" since {self.server.ended_utc}" if self.server.ended_utc else ""
            return View(conclusion=Text(f"{head} had ended before{since} ({how})", Tone.GOOD))
        ended = f"{head} stopped, {self.tree} processes gone"
        if not self.drain.gpus:
            return View(conclusion=Text(ended, Tone.GOOD))
        if not self.drain.drained:
            held = f"{ended}, but GPU memory is still held: {self.drain.held}"
            return View(conclusion=Text(held, Tone.BAD))
        idle = f"its GPUs idle after {self.drain.drain_s or 0:.2f} s"
        return View(conclusion=Text(f"{ended}, {idle}", Tone.GOOD))

    def _repr_html_(self) -> str:
        return self.view().to_html()


def stop(
    machine: Machine,
    name: str,
    *,
    grace_s: float = 10.0,
    drain_timeout_s: float = 60.0,
    progress: Progress = unwatched,
) -> StopReport:
    """Ends the server ``name``: SIGTERM to its main process, then SIGKILL to its whole tree.

    Args:
        machine: Where it runs.
        name: The server's.
        grace_s: Seconds between the two. SGLang drains open requests without a limit of its
            own after SIGTERM, so the limit is ours.
        drain_timeout_s: Limit of the wait for GPU memory in seconds.
        progress: Told of each step.

    Raises:
        OperationFailed: ``no_such_server``.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    before = Snapshot.from_dict(machine.call("snapshot", servers=False))
    stopped = machine.call("stop", name=name, grace_s=grace_s, on_event=events_of("stop", progress))
    drained = drain(
        machine,
        _levels_without(machine, before, name),
        timeout_s=drain_timeout_s,
        progress=progress,
    )
    return StopReport(
        machine.name,
        ServerFacts.from_dict(stopped["server"]),
        tuple(stopped["killed"]),
        tuple(stopped["left"]),
        sum(process.server == name for process in before.processes),
        drained,
        stopped["already_exited"],
    )


def _levels_without(machine: Machine, snapshot: Snapshot, name: str) -> dict[str, int]:
    """The level that each GPU of server ``name`` falls to once the server has gone."""
    idle_mib = machine.entry.idle_mib
    plan = plan_reset(snapshot)
    others = [j for j in (*plan.kill, *plan.spare) if j.process.server != name]
    mine = [process for process in snapshot.processes if process.server == name]
    held = {index for process in mine for index in process.gpu_devices}
    told = idle_levels(snapshot, idle_mib, (*plan.kill, *plan.spare))
    if any(g.index in held and g.holds_more_than(told[str(g.index)]) for g in snapshot.gpus):
        others += _neighbours(machine)
    levels = idle_levels(snapshot, idle_mib, others)
    return {index: level for index, level in levels.items() if int(index) in held}


def _neighbours(machine: Machine) -> tuple[Judgement, ...]:
    """Who else holds GPUs that a container shares; nobody where its host cannot be asked.

    A server must end also where the host is down: the drain then tells what is still held.
    """
    if machine.outer is None or machine.container is None:
        return ()
    try:
        host = Snapshot.from_dict(machine.outer.call("snapshot", servers=False))
    except Unreachable:
        return ()
    narrowed = container_processes(host, machine.container)
    spared = plan_reset(narrowed).spare
    return tuple(judgement for judgement in spared if judgement.process in narrowed.neighbours)


def the_server(machine: Machine, name: str | None) -> str:
    """``name``, or without one the name of the only server that lives on ``machine``.

    Raises:
        UsageError: if there are several, or none can have that name.
        CheckFailed: if there is none.
    """
    if name is not None:
        require_name(name)
        return name
    servers = machine.call("servers")["servers"]
    living = [one["name"] for one in servers if one["state"] != "exited"]
    names = living or [one["name"] for one in servers]
    if len(names) == 1:
        return str(names[0])
    if names:
        which = "which server?" if living else "no server runs here. These have ended:"
        raise UsageError(
            problem=f"{which} {', '.join(names)}",
            where=machine.name,
            way_out="Name one: --name NAME.",
        )
    raise CheckFailed(
        problem="no server was launched here",
        where=machine.name,
        way_out="Launch one: eagleops launch --profile P.",
        host=machine.name,
    )
