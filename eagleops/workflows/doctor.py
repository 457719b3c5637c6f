"""Doctor: the way in and the machine, check by check, before anything is launched."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.errors import Unreachable
from eagleops.machine import Machine
from eagleops.snapshot import Snapshot
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.box_checks import judge_box
from eagleops.workflows.check import Check, State
from eagleops.workflows.progress import Progress, Step, unwatched

TONES = {"pass": Tone.GOOD, "warn": Tone.WARNING, "fail": Tone.BAD}

# Logs and NCCL's own log of a night fit; below it a launch may die of a full disk.
DISK_FREE_MIB = 1024
# NCCL and PyTorch pass tensors through /dev/shm; a container's default of 64 MiB ends in
# SIGBUS at the first large one.
SHM_MIB = 1024
# TLS, ledger times and logs of two machines are compared: above it they mislead.
CLOCK_OFFSET_S = 2.0
# kernel.yama.ptrace_scope: 1 wants CAP_SYS_PTRACE or an ancestor, 2 CAP_SYS_PTRACE, 3 nobody.
YAMA_NOBODY = 3


@attrs.frozen
class DoctorReport:
    """All checks of one machine.

    Attributes:
        facts: What the ``doctor`` operation told, as JSON.
    """

    host: str
    checks: tuple[Check, ...]
    facts: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        """Whether no check failed; warnings do not count."""
        return all(check.state != "fail" for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``doctor --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "checks": [check.to_dict() for check in self.checks],
        }

    def view(self) -> View:
        """A line a check, and their count."""
        columns = (Column("check"), Column("state"), Column("seen"))
        rows = tuple((c.id, Text(c.state, TONES[c.state]), c.message) for c in self.checks)
        bad = [check for check in self.checks if check.state == "fail"]
        warned = [check for check in self.checks if check.state == "warn"]
        summary = f"{self.host}: {len(self.checks)} checks, {len(bad)} failed, {len(warned)} warned"
        tone = Tone.BAD if bad else Tone.WARNING if warned else Tone.GOOD
        return View((Table(columns, rows),), Text(summary, tone))

    def _repr_html_(self) -> str:
        return self.view().to_html()


def doctor(
    machine: Machine,
    *,
    port: int | None = None,
    paths: Sequence[str] = (),
    conf_files: Sequence[str] = (),
    progress: Progress = unwatched,
) -> DoctorReport:
    """Checks the way in to ``machine``, and the machine; changes nothing.

    A machine that cannot be reached is a failed check, told with its way out.

    Args:
        machine: Which.
        port: A port that should be free, the default profile's for example.
        paths: Models that should be there.
        conf_files: Files that profiles tell NCCL to read: read, and not judged.
        progress: Told of each step.

    Raises:
        Unreachable: if the machine itself cannot be reached.
    """
    progress(Step("look"))
    checks: list[Check] = []
    if machine.outer is not None:
        checks.append(_way_through(machine.outer))
    asked_s = time.time()
    facts = machine.call("doctor", port=port, paths=list(paths), conf_files=list(conf_files))
    answered_s = time.time()
    snapshot = Snapshot.from_dict(machine.call("snapshot"))
    # The answer left the machine somewhere between asking and hearing.
    offset_s = facts["time_s"] - (asked_s + answered_s) / 2
    checks += judge_facts(facts, snapshot, offset_s, (answered_s - asked_s) / 2)
    if port is not None:
        checks.append(_port(port, facts["port_owners"]))
    return DoctorReport(machine.name, tuple(checks), facts)


def judge_facts(
    facts: Mapping[str, Any], snapshot: Snapshot, offset_s: float, error_s: float
) -> Iterator[Check]:
    """The verdicts on what the ``doctor`` and ``snapshot`` operations saw; pure."""
    yield Check("way-in", "pass", f"reached as {facts['user']} (uid {facts['uid']})")
    yield Check("python3", "pass", f"{facts['python']}")
    yield _gpus(snapshot)
    yield _driver(facts, snapshot)
    yield _rights(facts)
    yield _disk(facts["disk"])
    yield _shared_memory(facts["shm"])
    yield _conf_files(facts["nccl_conf"])
    state: State = "pass" if abs(offset_s) <= CLOCK_OFFSET_S + error_s else "warn"
    yield from judge_box(
        facts["box"],
        nofile=facts["nofile"],
        memlock=facts["memlock"],
        gpus=len(snapshot.gpus),
    )
    yield Check("clock", state, f"{offset_s:+.2f} s against this machine (±{error_s:.2f} s)")


def _way_through(outer: Machine) -> Check:
    try:
        outer.call("snapshot", servers=False)
    except Unreachable as error:
        # A container with an address of its own works without its host, but for the case
        # in which only the host sees who holds the memory.
        return Check("container-host", "warn", f"{outer.name} cannot be asked: {error.problem}")
    return Check("container-host", "pass", f"{outer.name} answers")


def _gpus(snapshot: Snapshot) -> Check:
    if snapshot.gpus:
        names = sorted({gpu.name or "?" for gpu in snapshot.gpus})
        seen = f"{len(snapshot.gpus)} GPUs ({', '.join(names)}) by {snapshot.gpu_source}"
        if snapshot.gpu_problem:
            state: State = "fail" if snapshot.a_gpu_is_lost else "warn"
            return Check("gpus", state, f"{seen}, but: {snapshot.gpu_problem}")
        return Check("gpus", "pass", seen)
    return Check("gpus", "fail", snapshot.gpu_problem or "no GPU")


def _driver(facts: Mapping[str, Any], snapshot: Snapshot) -> Check:
    library = snapshot.driver_version
    module = facts["kernel_module"]
    if library is None:
        return Check("driver", "warn", "its version could not be read")
    if module and library not in module:
        first = module.splitlines()[0]
        return Check(
            "driver",
            "fail",
            f"library {library}, kernel module: {first}. Install the same driver version in the "
            "container as on its host, or reboot after an upgrade.",
        )
    return Check("driver", "pass", library)


def _rights(facts: Mapping[str, Any]) -> Check:
    yama = facts["yama"] or 0
    if facts["ptrace_capable"] and yama < YAMA_NOBODY:
        return Check("ptrace", "pass", "the live environment of every process can be read")
    if yama == 0:
        return Check("ptrace", "pass", f"{facts['user']}'s own processes can be read")
    return Check(
        "ptrace",
        "warn",
        f"kernel.yama.ptrace_scope is {yama}: verify-env cannot read live environments. "
        "Log in as root, or: sysctl kernel.yama.ptrace_scope=0",
    )


def _disk(disk: Mapping[str, Any]) -> Check:
    free_mib = disk["free_mib"]
    if free_mib is None:
        return Check("disk", "fail", f"{disk['path']}: {disk['problem']}")
    seen = f"{free_mib:,} MiB free at {disk['path']}"
    if not disk["writable"]:
        return Check("disk", "fail", f"{disk['path']} cannot be written to. Set state_home.")
    if free_mib < DISK_FREE_MIB:
        return Check("disk", "fail", f"{seen}: too little for logs. Free some, or set state_home.")
    return Check("disk", "pass", seen)


def _shared_memory(shm: Mapping[str, Any]) -> Check:
    total_mib = shm["total_mib"]
    if total_mib is None:
        return Check("shm", "warn", "/dev/shm could not be read")
    if total_mib < SHM_MIB:
        return Check(
            "shm",
            "warn",
            f"/dev/shm has {total_mib:,} MiB: large tensors end in SIGBUS. Give it more "
            "(mount -o remount,size=16G /dev/shm).",
        )
    return Check("shm", "pass", f"{total_mib:,} MiB")


def _conf_files(confs: list[dict[str, Any]]) -> Check:
    there = [conf for conf in confs if conf["lines"]]
    if not there:
        return Check("nccl-conf", "pass", "no nccl.conf sets anything beside the environment")
    seen = "; ".join(f"{conf['path']}: {', '.join(conf['lines'])}" for conf in there)
    return Check("nccl-conf", "warn", f"NCCL also reads {seen}")


def _port(port: int, owners: list[str]) -> Check:
    if not owners:
        return Check("port", "pass", f"{port} is free")
    return Check("port", "warn", f"{port} is taken by {', '.join(owners)}")
