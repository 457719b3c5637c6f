"""Stop: end a server's whole tree, then wait until the GPUs have drained."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.errors import OperationFailed
from eagleops.gpu import Gpu
from eagleops.machine import Machine
from eagleops.server import ServerFacts
from eagleops.snapshot import Snapshot, idle_levels, plan_reset
from eagleops.view import Text, Tone, View
from eagleops.workflows.progress import Progress, events_of, unwatched


@attrs.frozen
class StopReport:
    """A server that was ended.

    Attributes:
        killed: ``pid``, ``signal`` and ``gone_s`` of each process of its tree.
        left: What could not be ended: ``pid``, ``state``, ``reason``.
        drained: Whether the GPUs settled at their idle levels.
    """

    host: str
    server: ServerFacts
    killed: tuple[dict[str, Any], ...]
    left: tuple[dict[str, Any], ...]
    drained: bool
    drain_s: float | None
    gpus: tuple[Gpu, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing of it is left, in memory or on a GPU."""
        return self.drained and not self.left

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``stop --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "server": self.server.to_dict(),
            "killed": list(self.killed),
            "left": list(self.left),
            "drained": self.drained,
            "drain_s": self.drain_s,
            "gpus": [gpu.to_dict() for gpu in self.gpus],
        }

    def view(self) -> View:
        """One line."""
        head = f"{self.host}: {self.server.name}"
        if self.left:
            stuck = ", ".join(f"PID {one['pid']} ({one['reason']})" for one in self.left)
            return View(conclusion=Text(f"{head}: could not be killed: {stuck}", Tone.BAD))
        ended = f"{head} stopped ({len(self.killed)} processes)"
        if not self.drained:
            held = ", ".join(f"GPU {g.index}: {g.used_mib} MiB" for g in self.gpus if g.used_mib)
            return View(conclusion=Text(f"{ended}, but GPU memory is still held: {held}", Tone.BAD))
        idle = f"GPUs idle after {self.drain_s or 0:.2f} s"
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
    stopped = machine.call("stop", name=name, grace_s=grace_s, on_event=events_of("stop", progress))
    snapshot = Snapshot.from_dict(machine.call("snapshot"))
    idle_mib = idle_levels(snapshot, machine.entry.idle_mib, plan_reset(snapshot).spare)
    drain = machine.call(
        "drain",
        idle_mib=idle_mib,
        timeout_s=drain_timeout_s,
        on_event=events_of("drain", progress),
    )
    return StopReport(
        machine.name,
        ServerFacts.from_dict(stopped["server"]),
        tuple(stopped["killed"]),
        tuple(stopped["left"]),
        drain["drained"],
        drain["drain_s"],
        tuple(map(Gpu.from_dict, drain["gpus"])),
    )


def the_server(machine: Machine, name: str | None) -> str:
    """``name``, or without one the name of the only server that lives on ``machine``.

    Raises:
        OperationFailed: ``no_such_server`` or ``which_server``.
    """
    if name is not None:
        return name
    servers = machine.call("servers")["servers"]
    living = [one["name"] for one in servers if one["state"] != "exited"]
    names = living or [one["name"] for one in servers]
    if len(names) == 1:
        return str(names[0])
    raise OperationFailed(
        problem=f"which server? {', '.join(names)}" if names else "no server was launched here",
        where=machine.name,
        way_out="Name one: --name NAME." if names else "Launch one: eagleops launch --profile P.",
        host=machine.name,
        kind="which_server" if names else "no_such_server",
        data={"servers": names},
    )
