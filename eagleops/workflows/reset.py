"""Reset: kill what is stale, wait until GPU memory has drained, prove it.

Look, kill, look again, drain. A container whose own view shows no process while memory is
held has its host asked, which sees every process; there, too, only this container's
processes are killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.machine import Machine
from eagleops.process import Judgement
from eagleops.snapshot import (
    ResetPlan,
    Snapshot,
    container_processes,
    held_without_holder,
    idle_levels,
    plan_reset,
)
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.drain import Drain, drain, require_readable
from eagleops.workflows.progress import Progress, Step, events_of, unwatched

# A process may fork between the look and the kill; one that still does after so many
# rounds is respawned by something that a reset must not fight.
ROUNDS = 3


@attrs.frozen
class ResetReport:
    """What a reset did, or with ``dry_run`` would do.

    Attributes:
        killed: The processes that were ended; with ``dry_run`` those that would be.
        spared: The processes that hold a GPU and are not ours to end, each with its reason.
        left: What could not be ended, as the kill reported it: pid, state, reason.
        drain: How the wait for GPU memory ended; with ``dry_run`` nothing was waited for.
        idle_mib: The memory at which each GPU counts as idle, in MiB by its index: the
            machine's own level, and what the spared processes use.
        lost: What the driver says of a GPU that it has lost; nothing was proved of that one.
    """

    host: str
    dry_run: bool
    killed: tuple[Judgement, ...]
    spared: tuple[Judgement, ...]
    left: tuple[dict[str, Any], ...]
    drain: Drain
    idle_mib: Mapping[str, int]
    notes: tuple[str, ...] = ()
    lost: str = ""

    @property
    def ok(self) -> bool:
        """Whether all that was asked for holds."""
        return self.dry_run or (self.drain.drained and not self.left and not self.lost)

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``reset-gpus --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "would_kill" if self.dry_run else "killed": [j.to_dict() for j in self.killed],
            "spared": [judgement.to_dict() for judgement in self.spared],
            "left": list(self.left),
            "drained": None if self.dry_run else self.drain.drained,
            "drain_s": self.drain.drain_s,
            "gpus": [gpu.to_dict() for gpu in self.drain.gpus],
            "holders": [process.to_dict() for process in self.drain.holders],
            "notes": list(self.notes),
            "lost": self.lost or None,
        }

    def view(self) -> View:
        """The report as a table of processes and a line on the drain."""
        rows = [_judgement_row(self._verb, judgement) for judgement in self.killed]
        rows += [_judgement_row("spared", judgement) for judgement in self.spared]
        columns = ("", "PID", "user", "container", "process", "GPUs", "why")
        table = Table(
            tuple(Column(c, "right" if c == "PID" else "left") for c in columns),
            tuple(rows),
            empty=f"{self.host}: no process holds a GPU",
        )
        return View(
            (table.without_bare("container"),), self._conclusion(), tuple(map(Text, self.notes))
        )

    def _repr_html_(self) -> str:
        return self.view().to_html()

    @property
    def _verb(self) -> str:
        return "would kill" if self.dry_run else "killed"

    def _conclusion(self) -> Text:
        if self.dry_run:
            return Text(f"{self.host}: {len(self.killed)} to kill; nothing was touched (dry run)")
        if self.left:
            stuck = ", ".join(f"PID {one['pid']} ({one['reason']})" for one in self.left)
            return Text(f"{self.host}: could not be killed: {stuck}", Tone.BAD)
        if not self.drain.drained:
            return Text(f"{self.host}: not drained: {self.drain.held}", Tone.BAD)
        if self.lost:
            return Text(f"{self.host}: {self.lost}", Tone.BAD)
        count = f"{len(self.killed)} killed" if self.killed else "nothing to kill"
        if not self.drain.gpus:
            return Text(f"{self.host}: {count}; there is no GPU to drain", Tone.WARNING)
        settled = f"{len(self.drain.gpus)} GPUs idle after {self.drain.drain_s or 0:.2f} s"
        return Text(f"{self.host}: {count}, {settled}", Tone.GOOD)


def _judgement_row(verb: str, judgement: Judgement) -> tuple[str | Text, ...]:
    process = judgement.process
    tone = Tone.DIM if verb == "spared" else Tone.WARNING
    return (
        Text(verb, tone),
        str(process.pid),
        process.user or "",
        process.container or "",
        process.title or process.comm,
        ",".join(map(str, process.gpu_devices)),
        judgement.reason,
    )


def reset(
    machine: Machine,
    *,
    dry_run: bool = False,
    timeout_s: float = 60.0,
    grace_s: float = 5.0,
    progress: Progress = unwatched,
) -> ResetReport:
    """Kills what is stale on ``machine`` and waits until its GPU memory has drained.

    Args:
        machine: A host, or a container: then only what runs inside it may be killed.
        dry_run: Look and decide, touch nothing.
        timeout_s: Limit of the drain in seconds.
        grace_s: Seconds between SIGTERM and SIGKILL.
        progress: Told of each step.

    Raises:
        Unreachable: if the machine, or for a blind container its host, cannot be asked.
    """
    snapshot = _look(machine, progress)
    require_readable(machine, snapshot)
    plan, asked = _plan(machine, snapshot, progress)
    if dry_run:
        return _report(machine, snapshot, plan, dry_run=True, notes=_notes(asked))
    killed: list[Judgement] = []
    left: list[dict[str, Any]] = []
    for _ in range(ROUNDS):
        if not plan.kill:
            break
        left = _kill(asked or machine, plan, grace_s, progress)
        gone = {judgement.process.pid for judgement in plan.kill} - {one["pid"] for one in left}
        killed += [judgement for judgement in plan.kill if judgement.process.pid in gone]
        if left:
            break
        snapshot = _look(machine, progress)
        plan, asked = _plan(machine, snapshot, progress)
    idle_mib = idle_levels(snapshot, machine.entry.idle_mib, plan.spare)
    drained = drain(machine, idle_mib, timeout_s=timeout_s, progress=progress)
    return _report(
        machine,
        snapshot,
        attrs.evolve(plan, kill=tuple(killed)),
        left=tuple(left),
        drained=drained,
        idle_mib=idle_mib,
        notes=_notes(asked),
    )


def _look(machine: Machine, progress: Progress) -> Snapshot:
    progress(Step("look"))
    return Snapshot.from_dict(machine.call("snapshot"))


def _plan(
    machine: Machine, snapshot: Snapshot, progress: Progress
) -> tuple[ResetPlan, Machine | None]:
    """The plan, and the host that was asked where the container's own view was blind."""
    plan = plan_reset(snapshot)
    blind = held_without_holder(snapshot, machine.entry.idle_mib)
    if not blind or machine.outer is None or machine.container is None:
        return plan, None
    host_view = _look(machine.outer, progress)
    return plan_reset(container_processes(host_view, machine.container)), machine.outer


def _kill(
    machine: Machine, plan: ResetPlan, grace_s: float, progress: Progress
) -> list[dict[str, Any]]:
    targets = [
        {"pid": judgement.process.pid, "start_ticks": judgement.process.start_ticks}
        for judgement in plan.kill
    ]
    result = machine.call(
        "kill", targets=targets, grace_s=grace_s, on_event=events_of("kill", progress)
    )
    left: list[dict[str, Any]] = result["left"]
    return left


def _notes(asked: Machine | None) -> tuple[str, ...]:
    if asked is None:
        return ()
    note = (
        "The container's own view shows no process on GPUs whose memory is held, "
        f"so {asked.name} was asked: PIDs are the host's."
    )
    return (note,)


def _report(
    machine: Machine,
    snapshot: Snapshot,
    plan: ResetPlan,
    *,
    dry_run: bool = False,
    left: tuple[dict[str, Any], ...] = (),
    drained: Drain | None = None,
    idle_mib: Mapping[str, int] | None = None,
    notes: tuple[str, ...] = (),
) -> ResetReport:
    return ResetReport(
        host=machine.name,
        dry_run=dry_run,
        killed=plan.kill,
        spared=plan.spare,
        left=left,
        drain=drained or Drain(drained=False, drain_s=None, gpus=snapshot.gpus),
        idle_mib=idle_mib or {},
        notes=notes,
        lost=(snapshot.gpu_problem or "") if snapshot.a_gpu_is_lost else "",
    )
