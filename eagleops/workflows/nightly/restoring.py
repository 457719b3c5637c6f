"""Putting a host right: what the night launched is ended, what ran before runs again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.errors import EagleError, LedgerError, OperationFailed, Unreachable, UsageError
from eagleops.ledger import Ledger, Run
from eagleops.profile import Profile
from eagleops.server import ServerFacts
from eagleops.workflows.bench_record import run_of
from eagleops.workflows.launch import LaunchReport
from eagleops.workflows.nightly.limits import Ended
from eagleops.workflows.nightly.night_log import LAUNCHED, RESTORE
from eagleops.workflows.nightly.users import NIGHTLY, is_of_a_night, server_name
from eagleops.workflows.nightly.visit import Visit
from eagleops.workflows.record import launch_and_record
from eagleops.workflows.reproduce import plan_reproduction, reproduce
from eagleops.workflows.stop import stop

# A session whose client has gone ends within five seconds of its stdin.
LANDING_S, LANDING_POLL_S = 10.0, 0.1


@attrs.frozen
class WayBack:
    """How a server that was stopped is started again.

    Attributes:
        name: The server's.
        profile: Its profile's.
        launch_id: Of the launch that was stopped.
        run_uuid: The ledger's run of it: its very argv and environment; None where hosts.yaml's
            profile must do.
        run_id: The same run's number, for people.
    """

    name: str
    profile: str
    launch_id: str
    run_uuid: str | None = None
    run_id: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The way as a night's journal keeps it."""
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WayBack:
        """The way from a night's journal."""
        return cls(**{name: data.get(name) for name in attrs.fields_dict(cls)})  # type: ignore[arg-type]

    def command(self, host: str) -> str:
        """What a person types to start it."""
        if self.run_id is not None:
            return f"eagleops reproduce --run {self.run_id} --host {host} --name {self.name}"
        return f"eagleops launch --profile {self.profile} --host {host} --name {self.name}"


def way_back(visit: Visit, server: ServerFacts) -> WayBack | None:
    """How ``server`` can be started again; None where nothing here tells.

    Raises:
        Unreachable: if the machine was lost.
    """
    base = WayBack(server.name, server.profile, server.launch_id)
    run = _run(visit, server)
    if run is not None:
        try:
            plan = plan_reproduction(visit.machine, run, profile=_profile(visit, server.profile))
        except UsageError:
            plan = None
        if plan is not None and plan.ok:
            return attrs.evolve(base, run_uuid=run.header.uuid, run_id=run.id)
    profile = _profile(visit, server.profile)
    if profile is None or not _is_as_launched(server, profile):
        return None
    return base


def _is_as_launched(server: ServerFacts, profile: Profile) -> bool:
    """Whether today's profile starts what runs there, as far as its record tells."""
    of_profile = (profile.engine, profile.model, profile.port)
    return (server.engine, server.model, server.port) == of_profile


def put_right(visit: Visit) -> None:
    """Ends what the night launched, and starts again what it stopped.

    Raises:
        Unreachable: if the machine is lost; the journal keeps what is left.
    """
    end_launched(visit)
    stopped = list(visit.log.journal(visit.host).get(RESTORE) or ())
    for entry in stopped:
        _restore(visit, WayBack.from_dict(entry))
        left = [one for one in visit.log.journal(visit.host)[RESTORE] if one != entry]
        visit.log.settle(visit.host, **{RESTORE: left or None})
    told = any(f.kind == "restore" and f.host == visit.host for f in visit.log.night.findings)
    if visit.suite.restore and not told:
        visit.passed("restore", "nothing had to be stopped")


def end_launched(visit: Visit) -> None:
    """Ends the servers that nights launched here: this one, or one that was cut off.

    Raises:
        Unreachable: if the machine is lost.
    """
    _land(visit)
    for told in visit.machine.call("servers")["servers"]:
        server = ServerFacts.from_dict(told)
        if not is_of_a_night(server) or not (server.is_alive or server.tree):
            continue
        ended = stop(visit.machine, server.name, progress=visit.progress)
        if not ended.ok:
            message = f"{server.name} could not be ended: {ended.view().conclusion.text}"
            visit.faulty("launch", message, server.profile)
    visit.log.settle(visit.host, **{LAUNCHED: None})


def _land(visit: Visit) -> None:
    """Waits until no launch is in the air that a night began before its link was cut.

    Its start goes on over there for a moment, and its reservation for as long as the session
    that made it: where the link died without a word, that is ended.
    """
    deadline = time.monotonic() + LANDING_S
    while (holder := in_the_air(visit)) is not None and time.monotonic() < deadline:
        visit.watch.pause(LANDING_POLL_S)
    nights = {server_name(profile) for profile in visit.inventory.profiles}
    if holder is not None and holder["name"] in nights:
        target = {name: holder[name] for name in ("pid", "start_ticks")}
        visit.machine.call("kill", targets=[target], grace_s=1.0)


def in_the_air(visit: Visit) -> Mapping[str, Any] | None:
    """Who holds the machine for a launch; None for nobody."""
    launch_id = secrets.token_hex(16)
    try:
        visit.machine.call("reserve", name=f"{NIGHTLY}landing", launch_id=launch_id)
    except OperationFailed as failed:
        holder: Mapping[str, Any] | None = failed.data.get("holder")
        return holder if failed.kind == "launch_in_progress" else None
    visit.machine.call("release", launch_id=launch_id)
    return None


def _restore(visit: Visit, back: WayBack) -> None:
    """Starts one server again, and tells what came of it."""
    servers = [ServerFacts.from_dict(s) for s in visit.machine.call("servers")["servers"]]
    now = next((server for server in servers if server.name == back.name), None)
    if now is not None and now.is_alive and now.state != "stopping":
        visit.passed("restore", f"{back.name} runs", back.name)
        return
    visit.heading(f"start {back.name} again")
    try:
        if now is not None and (now.is_alive or now.tree):
            stop(visit.machine, back.name, progress=visit.progress)
        report = _started(visit, back)
    except (Unreachable, Ended):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, somebody must know by the morning
        why = error.in_a_line if isinstance(error, EagleError) else " ".join(str(error).split())
        message = f"{back.name} ran before the night and does not now: {why}"
        visit.faulty("restore", f"{message} Start it: {back.command(visit.host)}", back.name)
        return
    ready = "" if report.ready_s is None else f", ready after {report.ready_s:.1f} s"
    recorded = "" if report.run_id is None else f" as run {report.run_id}"
    if report.ok:
        message = f"{back.name} runs again{recorded}{ready}"
        visit.passed("restore", message, back.name, run_id=report.run_id)
    else:
        told = "" if report.environment is None else report.environment.view().conclusion.text
        message = f"{back.name} runs again{recorded}, but: {told}"
        visit.warned("restore", message, back.name, run_id=report.run_id)


def _started(visit: Visit, back: WayBack) -> LaunchReport:
    settings: dict[str, Any] = {
        "name": back.name,
        "reset_first": False,
        "timeout_s": visit.suite.ready_limit_s,
        "progress": visit.progress,
    }
    levels = visit.users().levels or None
    if back.run_uuid is None:
        profile = visit.inventory.profile(back.profile)
        return launch_and_record(visit.ledger, visit.machine, profile, idle_mib=levels, **settings)
    with Ledger.open(visit.ledger) as ledger:
        run = ledger.run(back.run_uuid)
        today = _profile(visit, back.profile)
        plan = plan_reproduction(visit.machine, run, profile=today, progress=visit.progress)
        if levels:
            request = {**plan.request, "require_free_mib": levels}
            plan = attrs.evolve(plan, request=request)
        done = reproduce(visit.machine, plan, ledger=ledger, **settings)
        return attrs.evolve(done.launch, run_id=done.run_id)


def _run(visit: Visit, server: ServerFacts) -> Run | None:
    """The run of a launch in this client's ledger."""
    try:
        with Ledger.open(visit.ledger) as ledger:
            number = run_of(ledger, visit.host, server.name, server.launch_id)
            return None if number is None else ledger.run(number)
    except LedgerError:
        return None


def _profile(visit: Visit, name: str) -> Profile | None:
    try:
        return visit.inventory.profile(name)
    except UsageError:
        return None
