"""A profile in a night: launched, its environment proved, measured, judged, and ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from eagleops.errors import (
    CannotTell,
    CheckFailed,
    EagleError,
    OperationFailed,
    ServerDied,
    ServerNotReady,
    Unreachable,
)
from eagleops.inventory.suite import ProfileCheck
from eagleops.measuring import prompts
from eagleops.profile import Profile
from eagleops.workflows.bench import Settings
from eagleops.workflows.bench_record import bench_and_record
from eagleops.workflows.bench_result import BenchResult
from eagleops.workflows.launch import LaunchReport
from eagleops.workflows.nightly import commands
from eagleops.workflows.nightly.clearing import Busy, Clearing
from eagleops.workflows.nightly.figures import judge
from eagleops.workflows.nightly.gpu_look import named
from eagleops.workflows.nightly.night_log import LAUNCHED
from eagleops.workflows.nightly.report import CANNOT_TELL
from eagleops.workflows.nightly.restoring import end_launched, in_the_air
from eagleops.workflows.nightly.users import server_name
from eagleops.workflows.nightly.visit import Visit
from eagleops.workflows.record import launch_and_record

# Failures of a launch that say that somebody is at the machine, and nothing of the profile.
_IN_USE = frozenset({"gpu_busy", "launch_in_progress", "locked"})
LOCK_POLL_S = 0.5
# Of a server that died, what its log said last.
LOG_LINES = 10


def serve(visit: Visit, clearing: Clearing, check: ProfileCheck, profile: Profile) -> None:
    """Every check of one profile; its server has ended afterwards.

    Raises:
        Unreachable: if the machine was lost.
        Ended: if the night is over. In both cases whoever called ends the server.
    """
    name = profile.name
    if not visit.once(f"profile:{name}"):
        return
    visit.heading(f"profile {name}")
    with visit.guarded("launch", name):
        try:
            levels = clearing.free(profile.gpus)
            _tell_free(visit, clearing, profile.gpus)
            _in_turn(visit, check, profile, levels)
        except Busy as busy:
            tell_busy(visit, busy)
            visit.skipped("launch", "the GPUs are used: see `busy`", name)
    with visit.watch.shielded():
        end_launched(visit)
    visit.log.done(visit.host, f"profile:{name}")


def run_commands(visit: Visit, clearing: Clearing) -> None:
    """The user's own commands: first those that disturb nobody, then those on idle GPUs.

    Raises:
        Unreachable: if the machine was lost.
    """
    for name in _left(visit, needs_idle_gpus=False):
        commands.run(visit, name)
    left = _left(visit, needs_idle_gpus=True)
    if not left:
        return
    visit.heading("commands")
    try:
        clearing.free()
    except Busy as busy:
        tell_busy(visit, busy)
        for name in left:
            visit.skipped("command", "the GPUs are used: see `busy`", name)
        return
    _tell_free(visit, clearing)
    for name in left:
        commands.run(visit, name)


def _left(visit: Visit, *, needs_idle_gpus: bool) -> list[str]:
    """The commands of that kind that were not run yet in this night."""
    found = commands.names(visit.suite, needs_idle_gpus=needs_idle_gpus)
    return [name for name in found if visit.once(f"command:{name}")]


def tell_busy(visit: Visit, busy: Busy) -> None:
    """Says who uses the GPUs, and that nobody was disturbed."""
    visit.skipped("busy", f"the GPUs are {busy.words}", facts=busy.users.to_dict())


def _tell_free(visit: Visit, clearing: Clearing, gpus: Collection[int] | None = None) -> None:
    if visit.log.night.finding(visit.host, "busy") is None:
        stopped = ", ".join(clearing.stopped)
        which = "the GPUs" if gpus is None else named(gpus)
        told = f"stopped for the night: {stopped}" if stopped else f"nobody uses {which}"
        visit.passed("busy", told)


def _in_turn(
    visit: Visit, check: ProfileCheck, profile: Profile, levels: Mapping[str, int]
) -> None:
    name = profile.name
    launched = _launched(visit, profile, levels)
    if launched is None:
        return
    if not _environment(visit, name, launched):
        why = "not measured: the environment of its workers is not the profile's"
        for kind in ("throttling", "speed"):
            visit.skipped(kind, why, name, run_id=launched.run_id)
        return
    try:
        measured = _measured(visit, profile, launched)
    except Busy as busy:
        tell_busy(visit, busy)
        visit.skipped("speed", "somebody came meanwhile: see `busy`", name, run_id=launched.run_id)
        return
    if measured is not None:
        visit.log.notice(measured.notice)
        judge(visit, check, measured)


def _launched(visit: Visit, profile: Profile, levels: Mapping[str, int]) -> LaunchReport | None:
    name = profile.name
    server = server_name(name)
    visit.log.note(visit.host, **{LAUNCHED: server})
    try:
        report = launch_and_record(
            visit.ledger,
            visit.machine,
            profile,
            name=server,
            reset_first=False,
            idle_mib=levels,
            timeout_s=min(visit.suite.ready_limit_s, visit.watch.limits.left_s),
            progress=visit.progress,
        )
    except Unreachable:
        raise
    except EagleError as error:
        _tell_unlaunched(visit, profile, error)
        return None
    visit.log.notice(report.notice)
    ready_s = report.ready_s or 0.0
    more = {"value": round(ready_s, 3), "unit": "s", "run_id": report.run_id}
    visit.passed("launch", f"ready after {ready_s:.1f} s", name, **more)
    return report


def _tell_unlaunched(visit: Visit, profile: Profile, error: EagleError) -> None:
    """Says why a profile's server did not get ready.

    Raises:
        Busy: if that is somebody else's doing.
        Ended: if it is the night's own limit.
        Unreachable: if the machine was lost.
    """
    name, message, facts = profile.name, error.in_a_line, {}
    if isinstance(error, OperationFailed) and error.kind in _IN_USE:
        raise Busy(f"used: {error.problem}", visit.users(profile.gpus)) from error
    if isinstance(error, CannotTell):
        visit.warned("launch", message, name, facts={CANNOT_TELL: True})
        return
    if isinstance(error, ServerNotReady):
        visit.watch()
        message = f"{error.problem}. The night has ended it."
    if isinstance(error, ServerDied):
        _refuse_company(visit, profile, error)
        facts = {"log_tail": list(error.log_tail[-LOG_LINES:])}
    visit.faulty("launch", message, name, facts=facts)


def _environment(visit: Visit, name: str, launched: LaunchReport) -> bool:
    """Whether a measurement of these workers would be one of the profile."""
    environment = launched.environment
    if environment is None:
        visit.skipped("environment", "nobody looked", name, run_id=launched.run_id)
        return True
    told = environment.view().conclusion.text
    status = environment.exit_status
    if status == 0:
        visit.passed("environment", told, name, run_id=launched.run_id)
    elif status == CannotTell.exit_status:
        # A blind witness is worth a word once, and no alarm: a fault begins, and does not fail.
        facts = {CANNOT_TELL: True}
        visit.warned("environment", told, name, run_id=launched.run_id, facts=facts)
    else:
        visit.faulty("environment", told, name, run_id=launched.run_id)
    return status != 1


def _measured(visit: Visit, profile: Profile, launched: LaunchReport) -> BenchResult | None:
    name = profile.name
    asked = visit.suite.measure
    settings = Settings(asked.runs, asked.tokens, asked.warmups, prompts.prompt(asked.prompt))
    while not visit.measuring.acquire(timeout=LOCK_POLL_S):
        visit.watch()
    try:
        # An answer that does not come must not keep a night from its end.
        return visit.watch.beside(
            lambda: bench_and_record(
                visit.ledger,
                visit.machine,
                launched.server.name,
                settings,
                progress=visit.progress,
                **visit.bench_settings,
            )
        )
    except CannotTell as blind:
        facts = {CANNOT_TELL: True}
        visit.skipped("speed", blind.in_a_line, name, run_id=launched.run_id, facts=facts)
    except CheckFailed as failed:
        _refuse_company(visit, profile, failed)
        message = f"could not be measured: {failed.in_a_line}"
        visit.faulty("speed", message, name, run_id=launched.run_id)
    finally:
        visit.measuring.release()
    return None


def _refuse_company(visit: Visit, profile: Profile, failed: EagleError) -> None:
    """Tells a server that somebody ended to have the GPUs from one that failed.

    Memory without a holder says nothing here: it is what a dead server's drains to.

    Raises:
        Busy: if somebody uses them now, or is about to.
        Unreachable: if the machine was lost.
    """
    users = visit.users(profile.gpus)
    by = users.words if users.servers or users.others or users.foreign else ""
    launching = None if by else in_the_air(visit)
    if launching is not None:
        by = f"a launch of {launching['name']}"
    if by:
        raise Busy(f"used by {by}; what the night did there was ended: {failed.in_a_line}", users)
