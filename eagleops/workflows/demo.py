"""The main job on the embedded box, for someone who sees it for the first time."""

from __future__ import annotations

import time
from typing import Any

import attrs

from eagleops.environment import EnvReport
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.launch import launch
from eagleops.workflows.progress import Progress, Step, unwatched
from eagleops.workflows.reset import ResetReport, reset
from eagleops.workflows.status import StatusReport, status
from eagleops.workflows.stop import StopReport, stop


@attrs.frozen
class Round:
    """Reset, launch, verify, status, stop of one profile."""

    profile: str
    reset: ResetReport
    ready_s: float
    environment: EnvReport
    status: StatusReport
    stop: StopReport

    @property
    def ok(self) -> bool:
        """Whether each step did what it should."""
        running = any(server.state == "ready" for server in self.status.servers)
        return self.reset.ok and self.environment.ok and running and self.stop.ok

    def to_dict(self) -> dict[str, Any]:
        """The round as JSON."""
        return {
            "profile": self.profile,
            "ok": self.ok,
            "reset": self.reset.to_dict(),
            "ready_s": self.ready_s,
            "environment": self.environment.to_dict(),
            "stop": self.stop.to_dict(),
        }


@attrs.frozen
class DemoReport:
    """What the demo did."""

    host: str
    rounds: tuple[Round, ...]
    took_s: float

    @property
    def ok(self) -> bool:
        """Whether each round did what it should."""
        return all(one.ok for one in self.rounds)

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``demo --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "took_s": self.took_s,
            "rounds": [one.to_dict() for one in self.rounds],
        }

    def view(self) -> View:
        """A row a profile, then what it means and what to do next."""
        headings = ("profile", "GPUs idle before", "ready after", "environment", "GPUs idle again")
        rows = tuple(_row(one) for one in self.rounds)
        did = f"{len(self.rounds)} servers launched, verified and stopped in {self.took_s:.1f} s"
        notes = (
            "All of it was simulated: eight GPUs that are not there, engines that are stand-ins;",
            "the processes, their environment, the waiting and the killing were real.",
            "",
            "Next: write your own machine into hosts.yaml (eagleops hosts shows what is in it),",
            "then: eagleops doctor --host NAME, eagleops reset-gpus --host NAME --dry-run,",
            "      eagleops launch --host NAME --profile baseline.",
        )
        return View(
            (Table(tuple(map(Column, headings)), rows, title="What was done"),),
            Text(did if self.ok else f"{did}; not all of it as it should", self._tone),
            tuple(Text(note, Tone.DIM) for note in notes),
        )

    def _repr_html_(self) -> str:
        return self.view().to_html()

    @property
    def _tone(self) -> Tone:
        return Tone.GOOD if self.ok else Tone.BAD


def _row(one: Round) -> tuple[str | Text, ...]:
    environment = one.environment
    tone = Tone.GOOD if environment.ok else Tone.BAD
    return (
        one.profile,
        f"{one.reset.drain.drain_s or 0:.2f} s",
        f"{one.ready_s:.1f} s",
        Text(environment.view().conclusion.text, tone),
        f"{one.stop.drain.drain_s or 0:.2f} s",
    )


def demo(
    machine: Machine, profiles: tuple[Profile, ...], *, progress: Progress = unwatched
) -> DemoReport:
    """Runs the main job for each of ``profiles``.

    Raises:
        EagleError: as the workflows that it runs.
    """
    began_s = time.monotonic()
    rounds = tuple(_round(machine, profile, progress) for profile in profiles)
    return DemoReport(machine.name, rounds, time.monotonic() - began_s)


def _round(machine: Machine, profile: Profile, progress: Progress) -> Round:
    progress(Step("$ eagleops reset-gpus"))
    cleared = reset(machine, progress=progress)
    progress(Step(f"$ eagleops launch --profile {profile.name}"))
    launched = launch(machine, profile, reset_first=False, progress=progress)
    progress(Step("$ eagleops status"))
    seen = status(machine, progress=progress)
    progress(Step("$ eagleops stop"))
    ended = stop(machine, launched.server.name, progress=progress)
    assert launched.ready_s is not None  # noqa: S101 - it waited and it verified
    assert launched.environment is not None  # noqa: S101
    return Round(profile.name, cleared, launched.ready_s, launched.environment, seen, ended)
