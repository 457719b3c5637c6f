"""Status: GPUs, who holds them, and the servers with their state. Looks, touches nothing."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.gpu import Gpu
from eagleops.machine import Machine
from eagleops.process import Process
from eagleops.server import ServerFacts
from eagleops.snapshot import Snapshot, container_processes, held_without_holder
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.progress import Progress, Step, unwatched

STATE_TONES = {
    "ready": Tone.GOOD,
    "starting": Tone.WARNING,
    "stopping": Tone.WARNING,
    "exited": Tone.DIM,
    "lost": Tone.BAD,
}


@attrs.frozen
class StatusReport:
    """A machine as it is now.

    Attributes:
        gpu_problem: Why not every GPU could be read; empty for nothing.
        holders: The processes that hold a GPU, by PID of the machine that was asked.
        notes: What a reader should know of how this was seen.
        driver_found: Whether anything of a GPU driver is there. A machine without is looked at as
            it is; whether it ought to have one is for doctor to say.
    """

    host: str
    gpus: tuple[Gpu, ...]
    gpu_problem: str
    holders: tuple[Process, ...]
    servers: tuple[ServerFacts, ...]
    notes: tuple[str, ...] = ()
    driver_found: bool = True

    @property
    def ok(self) -> bool:
        """Whether all GPUs that a driver has could be read and no server is lost."""
        told = not (self.gpu_problem and self.driver_found)
        return told and all(server.state != "lost" for server in self.servers)

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``status --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "gpus": [{**gpu.to_dict(), "holders": self._pids_on(gpu)} for gpu in self.gpus],
            "gpu_problem": self.gpu_problem or None,
            "driver_found": self.driver_found,
            "holders": [process.to_dict() for process in self.holders],
            "servers": [server.to_dict() for server in self.servers],
            "notes": list(self.notes),
        }

    def view(self) -> View:
        """GPUs, holders and servers, a table each."""
        tone = Tone.BAD if self.driver_found else Tone.WARNING
        problem = Text(f"{self.host}: {self.gpu_problem}" if self.gpu_problem else "", tone)
        tables = (self._gpu_table(), self._holder_table(), self._server_table())
        return View(tables, problem, tuple(Text(note, Tone.WARNING) for note in self.notes))

    def _repr_html_(self) -> str:
        return self.view().to_html()

    def _pids_on(self, gpu: Gpu) -> list[int]:
        return [p.pid for p in self.holders if gpu.index in p.gpu_devices or gpu.uuid in p.gpu_mib]

    def _gpu_table(self) -> Table:
        headings = ("GPU", "name", "memory MiB", "power W", "°C", "SM MHz", "throttled", "held by")
        right = {"GPU", "memory MiB", "power W", "°C", "SM MHz"}
        rows = tuple(self._gpu_row(gpu) for gpu in self.gpus)
        return Table(_columns(headings, right), rows, title=f"{self.host}: GPUs")

    def _gpu_row(self, gpu: Gpu) -> tuple[str | Text, ...]:
        slowdowns = gpu.slowdowns
        throttled = "?" if slowdowns is None else ", ".join(slowdowns) or "no"
        pids = ", ".join(map(str, self._pids_on(gpu)))
        return (
            str(gpu.index),
            gpu.name or "?",
            f"{_number(gpu.used_mib)} / {_number(gpu.total_mib)}",
            _number(gpu.power_w),
            _number(gpu.temperature_c),
            _number(gpu.sm_clock_mhz),
            Text(throttled, Tone.WARNING if slowdowns else Tone.DIM),
            pids or Text("nobody", Tone.DIM),
        )

    def _holder_table(self) -> Table:
        rows = tuple(
            (
                str(process.pid),
                process.user or "",
                process.container or "",
                process.server or "",
                process.title or process.comm,
                _number(sum(mib or 0 for mib in process.gpu_mib.values()) or None),
            )
            for process in self.holders
        )
        headings = ("PID", "user", "container", "server", "process", "GPU MiB")
        table = Table(_columns(headings, {"PID", "GPU MiB"}), rows, title="Who holds them")
        return table.without_bare("container")

    def _server_table(self) -> Table:
        rows = tuple(_server_row(server) for server in self.servers)
        headings = ("server", "profile", "state", "PID", "port", "log")
        return Table(_columns(headings, {"PID", "port"}), rows, title="Servers")


def _server_row(server: ServerFacts) -> tuple[str | Text, ...]:
    ended = ""
    if server.state == "exited":
        ended = f" ({server.signal or server.exit_status})"
    return (
        server.name,
        server.profile,
        Text(server.state + ended, STATE_TONES.get(server.state, Tone.PLAIN)),
        str(server.pid or ""),
        str(server.port or ""),
        server.log,
    )


def _columns(headings: tuple[str, ...], right: set[str]) -> tuple[Column, ...]:
    return tuple(Column(h, "right" if h in right else "left") for h in headings)


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f}"


def status(machine: Machine, *, progress: Progress = unwatched) -> StatusReport:
    """Looks at ``machine``: one round trip, two where a container's view is blind.

    Raises:
        Unreachable: if the machine cannot be reached.
    """
    progress(Step("look"))
    snapshot = Snapshot.from_dict(machine.call("snapshot"))
    holders = tuple(p for p in snapshot.processes if p.holds_gpu)
    notes: tuple[str, ...] = ()
    if machine.outer is not None and machine.container is not None:
        blind = held_without_holder(snapshot, machine.entry.idle_mib)
        if blind:
            host_view = Snapshot.from_dict(machine.outer.call("snapshot"))
            inside = container_processes(host_view, machine.container)
            holders = tuple(p for p in inside.processes if p.holds_gpu)
            notes = (f"Holders as {machine.outer.name} sees them: PIDs are the host's.",)
    return StatusReport(
        machine.name,
        snapshot.gpus,
        snapshot.gpu_problem or "",
        holders,
        snapshot.servers,
        notes,
        snapshot.driver_found,
    )
