"""Checks that only look: the way in, doctor, the GPUs' health, leftovers, memory, the disk."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from eagleops.phrases import some
from eagleops.workflows.doctor import doctor
from eagleops.workflows.nightly import gpu_health
from eagleops.workflows.nightly.gpu_health import judge_health, read_health, read_rested
from eagleops.workflows.nightly.users import MOST_NAMED, Users
from eagleops.workflows.nightly.visit import Visit

HEALTH = "health"


def reach(visit: Visit) -> None:
    """Knocks at the machine.

    Raises:
        Unreachable: if nobody opens.
    """
    found = visit.machine.call("snapshot")["machine"]
    visit.passed("reach", f"reached as {found['user']}, Python {found['python']}")
    if visit.machine.entry.by_ssh:
        visit.passed("host-key", "the key is the one on record")


def look(visit: Visit) -> None:
    """Every check that only looks, one after the other.

    Raises:
        Unreachable: if the machine was lost.
    """
    users = visit.settled_users()
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("doctor", lambda: _doctor(visit)),
        ("xid", lambda: health(visit, idle=not users.anybody)),
        ("stale", lambda: _stale(visit, users)),
        ("idle-memory", lambda: _idle_memory(visit, users)),
        ("disk", lambda: _disk(visit)),
    )
    for kind, step in steps:
        if visit.once(kind):
            with visit.guarded(kind):
                step()
            visit.log.done(visit.host, kind)


def health(visit: Visit, *, idle: bool) -> None:
    """The GPUs' health against the last night's.

    Raises:
        Unreachable: if the machine was lost.
    """
    before, _ = visit.log.facts_before(visit.host, HEALTH, gpu_health.use)
    told = read_health(visit.machine, before)
    visit.log.keep(visit.host, **{HEALTH: told})
    visit.log.add(*judge_health(visit.host, told, before, visit.suite.rule, idle=idle))


def idle_again(visit: Visit) -> None:
    """What could not be judged while a server ran, now that it has been stopped.

    Raises:
        Unreachable: if the machine was lost.
    """
    before, _ = visit.log.facts_before(visit.host, HEALTH, gpu_health.use)
    told = read_rested(visit.machine, before, visit.suite.rule, visit.watch.pause)
    now = judge_health(visit.host, told, before, visit.suite.rule, idle=True)
    here = [finding for finding in visit.log.night.findings if finding.host == visit.host]
    skipped = {finding.id for finding in here if finding.state == "skip"}
    visit.log.add(*(finding for finding in now if finding.id in skipped))


def _doctor(visit: Visit) -> None:
    real = getattr(visit.machine.entry, "transport", "") != "sim"
    models = [profile.model or "" for _, profile in visit.profiles if real]
    paths = dict.fromkeys(model for model in models if model.startswith("/"))
    report = doctor(
        visit.machine, paths=list(paths), conf_files=visit.conf_files, progress=visit.progress
    )
    visit.told_by_doctor = report.facts
    found = []
    for check in report.checks:
        rule = visit.rule("doctor", check.id)
        if not rule.on:
            continue
        seen = rule.passed(visit.host, check.message, subject=check.id)
        worst = "warn" if rule.severity == "warn" and check.state == "fail" else check.state
        found.append(attrs.evolve(seen, state=worst))
    visit.log.add(*found)


def _stale(visit: Visit, users: Users) -> None:
    left = [(name, process) for name, found in users.stale for process in found]
    if len(left) <= (visit.rule("stale").limit or 0):
        visit.passed("stale", "nothing that has ended holds a GPU", value=len(left))
        return
    told = some([f"PID {p.pid} ({p.title or p.comm}) of {name}" for name, p in left], MOST_NAMED)
    way_out = f"End them: eagleops reset-gpus --host {visit.host}"
    visit.faulty("stale", f"left behind: {told}. {way_out}", value=len(left))


def _idle_memory(visit: Visit, users: Users) -> None:
    over = {gpu.index: (gpu.used_mib or 0) - users.levels[str(gpu.index)] for gpu in users.unseen}
    worst = max(over.values(), default=0)
    if worst <= (visit.rule("idle-memory").limit or 0):
        seen = "all that is in use has a holder" if users.anybody else "idle GPUs hold none"
        visit.passed("idle-memory", seen, value=worst)
        return
    told = ", ".join(f"GPU {gpu.index}: {gpu.used_mib:,} MiB" for gpu in users.unseen)
    message = (
        f"{told} in use, and no process in sight holds it. Look from the host, or reset the GPU "
        "(nvidia-smi --gpu-reset)."
    )
    facts = {"over_mib": {str(index): mib for index, mib in over.items()}}
    visit.faulty("idle-memory", message, value=worst, facts=facts)


def _disk(visit: Visit) -> None:
    disk = visit.doctor_facts()["disk"]
    free_mib, limit = disk["free_mib"], visit.rule("disk").limit or 0
    if free_mib is None:
        visit.skipped("disk", f"{disk['path']}: {disk.get('problem') or 'cannot be read'}")
    elif free_mib < limit:
        message = f"{free_mib:,} MiB free at {disk['path']}: old servers' logs can be removed there"
        visit.faulty("disk", message, value=free_mib)
    else:
        visit.passed("disk", f"{free_mib:,} MiB free at {disk['path']}", value=free_mib)
