"""Record: a launch, with everything that a later run can be compared with."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from eagleops import lint as linter
from eagleops._version import __version__
from eagleops.errors import EagleError, LedgerError, ServerDied, ServerNotReady
from eagleops.ledger import Header, Ledger, Run
from eagleops.machine import Machine
from eagleops.profile import Profile, SecretReference
from eagleops.remote import process_table, redact
from eagleops.session import Event
from eagleops.workflows.launch import LaunchReport, as_json, launch
from eagleops.workflows.progress import Progress, Step, unwatched
from eagleops.workflows.secrets import secret_values

# What a launch can come to that is worth a line in the ledger.
Launched = LaunchReport | ServerDied | ServerNotReady


@attrs.frozen
class Recorded:
    """Whether a launch is in the ledger.

    Attributes:
        run_id: Its number; None if it could not be recorded.
        notice: What a person should know: why not, or what was done to the ledger's file.
    """

    run_id: int | None
    notice: str = ""


def launch_and_record(
    path: Path | None,
    machine: Machine,
    profile: Profile,
    *,
    progress: Progress = unwatched,
    **settings: Any,
) -> LaunchReport:
    """Launches ``profile`` and records the run, also if it dies.

    Args:
        path: The ledger's file; None for the user's own.
        machine: Where.
        profile: What.
        progress: Told of each step.
        settings: As :func:`eagleops.workflows.launch.launch` takes them.

    Raises:
        EagleError: as :func:`eagleops.workflows.launch.launch`.
    """
    try:
        report = launch(machine, profile, progress=progress, **settings)
    except (ServerDied, ServerNotReady) as ended:
        linted = as_json(linter.lint(profile)) if settings.get("lint_first", True) else None
        record(path, machine, profile, ended, lint=linted, progress=progress)
        raise
    linted = as_json(report.findings)
    recorded = record(path, machine, profile, report, lint=linted, progress=progress)
    return attrs.evolve(report, run_id=recorded.run_id, notice=recorded.notice)


def record(
    path: Path | None,
    machine: Machine,
    profile: Profile | Mapping[str, Any],
    launched: Launched,
    *,
    lint: Any = None,
    progress: Progress = unwatched,
) -> Recorded:
    """Records a launch in the ledger at ``path``: :func:`record_launch`, without its errors.

    A server that runs is not brought down by a ledger that is full: the notice tells it.
    """
    try:
        with Ledger.open(path) as ledger:
            run_id = record_launch(ledger, machine, profile, launched, lint=lint, progress=progress)
            return Recorded(run_id, ledger.notice)
    except LedgerError as error:
        return Recorded(None, f"This run is not recorded: {error}")


def record_launch(
    ledger: Ledger,
    machine: Machine,
    profile: Profile | Mapping[str, Any],
    launched: Launched,
    *,
    lint: Any = None,
    secrets: Iterable[str] = (),
    progress: Progress = unwatched,
) -> int:
    """Looks at what a launched server runs on, and records it as a run.

    Args:
        ledger: Where.
        machine: The server's.
        profile: What was launched; of a run that is reproduced, its recorded ``profile_source``.
        launched: The launch's report, or the error that it ended in.
        lint: The linter's findings as JSON; None where nobody linted.
        secrets: Values that must not be recorded, beside the profile's own.
        progress: Told of each step.

    Returns:
        The run's number. Where the machine is lost meanwhile, what is known is recorded.

    Raises:
        LedgerError: if it cannot be written.
    """
    progress(Step("record"))
    source = profile.to_dict() if isinstance(profile, Profile) else dict(profile)
    name = launched.server if isinstance(launched, EagleError) else launched.server.name
    parts = {"profile_source": source, "lint": lint, **server_parts(machine, name)}
    parts |= _launch_parts(launched, parts.get("snapshot") or {})
    spec = parts.get("spec") or {}
    header = Header(
        host=machine.name,
        server=name,
        profile=str(source["name"]),
        engine=str(source["engine"]),
        model=spec.get("model") or source.get("model"),
        user=process_table.user(os.geteuid()),
        client=socket.gethostname(),
        eagleops=__version__,
    )
    own = secrets_of(profile) if isinstance(profile, Profile) else ()
    return ledger.add(Run.begin(header, parts), secrets=(*own, *secrets))


def server_parts(machine: Machine, name: str) -> dict[str, Any]:
    """The parts of a run that its machine tells: one look at it, one at its server."""
    parts: dict[str, Any] = {}
    with _told(parts):
        parts["snapshot"] = machine.call("snapshot")
        parts |= installation_parts(machine, server=name)
    return parts


def installation_parts(machine: Machine, **asked: Any) -> dict[str, Any]:
    """What the ``installation`` operation tells, as parts of a run.

    Args:
        machine: Which.
        asked: The operation's arguments: :mod:`eagleops.remote.installation`.

    Raises:
        OperationFailed: ``no_such_server``.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    clock = _Clock()
    found = machine.call("installation", on_event=clock, **asked)
    parts = {
        "clock": clock.to_dict(),
        "machine": found["machine"],
        "gpus": found["gpus"],
        "packages": {name: found[name] for name in ("python", "distributions", "compared")},
        "models": {"models": found["models"]},
    }
    if found["spec"] is not None:
        # What runs is there to be looked at.
        parts["spec"] = found["spec"]
        parts["libraries"] = {name: found[name] for name in ("libraries", "unreadable")}
    if machine.outer is not None:
        # A container sees its host's kernel, but not what runs it there.
        outer: dict[str, Any] = {}
        with _told(outer):
            outer = machine.outer.call("installation", packages=[])
        parts["machine"] = {**found["machine"], "outer": outer.get("machine", outer)}
    return parts


def secrets_of(profile: Profile) -> tuple[str, ...]:
    """The secret values that a profile holds, by their names, or by reference."""
    texts = [*profile.env.items(), *((n, v) for n, v in profile.args.items() if isinstance(v, str))]
    named = tuple(
        value
        for name, value in texts
        if redact.is_secret(name, value) and not isinstance(value, SecretReference)
    )
    return (*named, *secret_values(profile))


def _launch_parts(launched: Launched, snapshot: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(launched, EagleError):
        outcome = "died" if isinstance(launched, ServerDied) else "not_ready"
        named = (one for one in snapshot.get("servers", ()) if one["name"] == launched.server)
        seen: Mapping[str, Any] = next(named, {})
        return {
            "log": {
                "path": seen.get("log"),
                "state_dir": seen.get("state_dir"),
                "tail": list(launched.log_tail),
            },
            "outcome": {"outcome": outcome, "detail": launched.problem},
        }
    server = launched.server
    outcome = "started" if launched.ready_s is None else "ready"
    parts: dict[str, Any] = {
        "launch": {
            "ready_s": launched.ready_s,
            "reset": None if launched.reset is None else launched.reset.to_dict(),
            "server": server.to_dict(),
        },
        "log": {"path": server.log, "state_dir": server.state_dir},
        "outcome": {"outcome": outcome, "detail": ""},
    }
    if launched.environment is not None:
        parts["environment"] = launched.environment.to_dict()
    return parts


@attrs.define
class _Clock:
    """Takes the machine's clock against this one as its first word arrives."""

    asked_s: float = attrs.field(factory=time.time)
    told: dict[str, Any] = attrs.field(factory=dict)

    def __call__(self, event: Event) -> None:
        if event["event"] == "clock":
            now_s = time.time()
            # It was said somewhere between asking and hearing.
            self.told = {
                "offset_s": event["time_s"] - (self.asked_s + now_s) / 2,
                "uncertainty_s": (now_s - self.asked_s) / 2,
            }

    def to_dict(self) -> dict[str, Any]:
        """``offset_s``: how far the machine's clock is ahead; ``uncertainty_s`` around it."""
        return self.told


@contextlib.contextmanager
def _told(parts: dict[str, Any]) -> Iterator[None]:
    """What a machine does not tell is told as its problem, and costs no run."""
    try:
        yield
    except EagleError as error:
        parts["machine"] = {"problem": str(error)}
