"""Reproduce: a recorded run again, with the same argv and environment, on whichever host.

What cannot be the same is told before anything is touched: the host and its GPUs, versions,
patched files, the model's files, and values that no ledger holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.engines import engine
from eagleops.errors import ServerDied, ServerNotReady, UsageError
from eagleops.ledger import Ledger, Run
from eagleops.ledger.diff import RunDiff, diff
from eagleops.ledger.relaunch import relaunch_request
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.server import require_name
from eagleops.view import Text, Tone, View
from eagleops.workflows.launch import LaunchReport, start
from eagleops.workflows.progress import Progress, Step, unwatched
from eagleops.workflows.record import installation_parts, record_launch, secrets_of
from eagleops.workflows.secrets import with_values

# Parts that tell where a run takes place, not what it came to.
PLACE = ("packages", "models", "gpus", "machine")


@attrs.frozen
class ReproducePlan:
    """What would be started, and what of it cannot be as it was.

    Attributes:
        request: As the ``spawn`` operation takes it.
        place: The place of the recorded run against this one, as it is now.
        missing: Secrets whose values are nowhere: without them nothing is started.
        notes: What else a person should know.
        secrets: The values of those that are known.
    """

    run: Run
    host: str
    request: Mapping[str, Any] = attrs.field(repr=False)
    place: RunDiff
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether it can be started."""
        return not self.missing

    def to_dict(self) -> dict[str, Any]:
        """The plan as the ``reproduce --dry-run --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "reproduces": self.run.id,
            "missing": list(self.missing),
            "differences": [change.to_dict() for change in self.place.changes],
            "unchanged": dict(self.place.unchanged),
            "not_compared": list(self.place.not_compared),
            "notes": list(self.notes),
        }

    def view(self) -> View:
        """What cannot be the same."""
        missing = [Text(f"No value is known for {name}", Tone.BAD) for name in self.missing]
        notes = [Text(note, Tone.WARNING) for note in self.notes]
        return View(self.place.view().tables, self._conclusion(), (*missing, *notes))

    def _conclusion(self) -> Text:
        head = f"{self.host}: run {self.run.id} ({self.run.header.profile}) again"
        if self.missing:
            return Text(f"{head}: cannot be started", Tone.BAD)
        changes = len(self.place.changes)
        if not changes:
            return Text(f"{head}: nothing was found that is not as it was", Tone.GOOD)
        return Text(f"{head}: {changes} things are not as they were", Tone.WARNING)

    def _repr_html_(self) -> str:
        return self.view().to_html()


@attrs.frozen
class ReproduceReport:
    """A run that was started again.

    Attributes:
        run_id: The new run's number; None where it was not recorded.
    """

    plan: ReproducePlan
    launch: LaunchReport
    run_id: int | None

    @property
    def ok(self) -> bool:
        """As the launch's."""
        return self.launch.ok

    @property
    def exit_status(self) -> int:
        """As the launch's."""
        return self.launch.exit_status

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``reproduce --json`` document's body."""
        launch = {**self.launch.to_dict(), "run_id": self.run_id}
        return {**launch, "ok": self.ok, "plan": self.plan.to_dict()}

    def view(self) -> View:
        """The launch, and which run it repeats."""
        seen = self.launch.view()
        note = Text(f"Run {self.plan.run.id} again.")
        return attrs.evolve(seen, notes=(*seen.notes, note))

    def _repr_html_(self) -> str:
        return self.view().to_html()


def plan_reproduction(
    machine: Machine,
    run: Run,
    *,
    profile: Profile | None = None,
    progress: Progress = unwatched,
) -> ReproducePlan:
    """Looks at ``machine`` and says what a run there would have in common with ``run``.

    Args:
        machine: Where it would run.
        run: What was recorded.
        profile: The profile of today from which the values of secrets are taken.
        progress: Told of each step.

    Raises:
        UsageError: if the run's command was not recorded.
        Unreachable: if the machine cannot be reached.
    """
    progress(Step("look"))
    same_host = machine.name == run.header.host
    sim = (run.part("profile_source") or {}).get("sim") or {}
    request, missing = relaunch_request(
        run,
        supplied=machine.launch_env_for(sim),
        require_free_mib=machine.entry.idle_mib,
        profile=profile and with_values(profile),
        same_host=same_host,
    )
    now = _place_now(machine, run, request)
    then = attrs.evolve(run, facts=tuple(fact for fact in run.facts if fact.part in now))
    header = attrs.evolve(run.header, host=machine.name, id=None, tok_s=None)
    place = diff(then, Run.begin(header, now))
    notes = (
        [] if same_host else [f"It ran on {run.header.host}; HOME, USER and PATH are the host's"]
    )
    secrets = secrets_of(profile) if profile else ()
    return ReproducePlan(run, machine.name, request, place, missing, tuple(notes), secrets)


def reproduce(
    machine: Machine,
    plan: ReproducePlan,
    *,
    ledger: Ledger | None = None,
    name: str | None = None,
    progress: Progress = unwatched,
    **settings: Any,
) -> ReproduceReport:
    """Starts what was planned, as :func:`eagleops.workflows.launch.launch` would.

    Args:
        machine: The plan's.
        plan: What to start.
        ledger: Where the new run is recorded, also if it dies; without it nowhere.
        name: The server's; the recorded one's without it.
        progress: Told of each step.
        settings: ``reset_first``, ``wait``, ``verify_after`` and the limits, as there.

    Raises:
        UsageError: before anything is touched, if a secret's value is missing.
        CheckFailed, Unreachable: as there.
        LedgerError: if the ledger cannot be written; the server is left running.
    """
    if plan.missing:
        raise _cannot_be_started(plan)
    header = plan.run.header
    require_name(header.server if name is None else name)
    named = {"name": header.profile, "engine": header.engine}
    source = plan.run.part("profile_source") or named
    try:
        report = start(
            machine,
            engine(header.engine),
            plan.request,
            name=name or header.server,
            progress=progress,
            **settings,
        )
    except (ServerDied, ServerNotReady) as ended:
        if ledger is not None:
            record_launch(ledger, machine, source, ended, secrets=plan.secrets, progress=progress)
        raise
    run_id = None
    if ledger is not None:
        run_id = record_launch(
            ledger, machine, source, report, secrets=plan.secrets, progress=progress
        )
    return ReproduceReport(plan, attrs.evolve(report, run_id=run_id), run_id)


def _cannot_be_started(plan: ReproducePlan) -> UsageError:
    return UsageError(
        problem=f"no value is known for {', '.join(plan.missing)}",
        where=f"run {plan.run.id}",
        way_out=f"No ledger holds secrets: set them in profile {plan.run.header.profile} "
        "of hosts.yaml, or on the target and name them as `inherit:` there.",
    )


def _place_now(machine: Machine, run: Run, request: Mapping[str, Any]) -> dict[str, Any]:
    packages = run.part("packages") or {}
    python = (packages.get("python") or {}).get("executable")
    models = (run.part("models") or {}).get("models") or []
    found = installation_parts(
        machine,
        python=python,
        packages=[compared["name"] for compared in packages.get("compared") or ()],
        models=[{"role": model["role"], "name": model["name"]} for model in models],
        variables={name: value for name, value in request["env"].items() if value is not None},
        cwd=request["cwd"],
    )
    return {part: found[part] for part in PLACE if run.part(part) is not None}
