"""Compare: the same protocol for each profile, then one answer.

For each restart: reset, launch, environment verified, warm-up, measurement, stop, cool-down.
What has been measured stands in the ledger at once, so that an interrupted comparison can be
taken up where it was.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.comparison.fairness import draft_tokens
from eagleops.comparison.loading import load
from eagleops.comparison.trial import Restarts, Trial
from eagleops.comparison.verdict import verdicts
from eagleops.errors import CheckFailed, EagleError, LedgerError, ServerDied, ServerNotReady
from eagleops.ledger import Ledger
from eagleops.machine import Machine
from eagleops.measuring import prompts
from eagleops.profile import Profile
from eagleops.workflows.bench import Settings
from eagleops.workflows.bench_record import bench_and_record, bench_parts
from eagleops.workflows.compare_plan import ComparePlan, Protocol, plan_comparison
from eagleops.workflows.compare_result import CompareResult
from eagleops.workflows.cool_down import Band, cool_down, look
from eagleops.workflows.launch import READY_LIMIT_S, LaunchReport
from eagleops.workflows.progress import Progress, Step, unwatched
from eagleops.workflows.record import launch_and_record
from eagleops.workflows.reset import reset
from eagleops.workflows.stop import stop

# A profile whose server fails so often is given up: it would fail again.
MOST_FAILURES = 2
# A comparison's runs are among the latest of its host.
LOOK_BACK = 1000
_GO_ON = "What was measured is kept: the same command with --resume goes on from there."


def compare(
    machine: Machine,
    profiles: Sequence[Profile],
    protocol: Protocol | None = None,
    *,
    ledger: Path | None = None,
    resume: bool = False,
    timeout_s: float = READY_LIMIT_S,
    progress: Progress = unwatched,
    **bench_settings: Any,
) -> CompareResult:
    """Compares ``profiles`` on ``machine``, the first being what the others are measured by.

    Args:
        machine: Where.
        profiles: The baseline first.
        protocol: How.
        ledger: The ledger's file; None for the user's own.
        resume: Take up the latest comparison of the same profiles, protocol and machine:
            the restarts that it has measured are not measured again, whether they count or not.
            Those without a figure are: nothing is picked by trying them again.
        timeout_s: Limit of the wait for each server in seconds.
        progress: Told of each step.
        bench_settings: ``direct`` and ``api_key``, as
            :func:`eagleops.workflows.bench.bench` takes them.

    Raises:
        UsageError, ProfileError: before anything is touched.
        CheckFailed: if the GPUs do not drain, or a port is taken.
        Unreachable: if the machine cannot be reached, or was lost. What was measured is in
            the ledger: ``resume`` goes on from there.
    """
    plan = plan_comparison(machine.name, machine.entry.python, profiles, protocol or Protocol())
    load("scipy.stats")  # before hours of measuring that could not be judged
    comparison = _Comparison(machine, plan, ledger, timeout_s, progress, bench_settings)
    if getattr(machine.entry, "transport", "") == "sim":
        comparison.notes.append("Simulated: these figures come from the embedded box.")
    if resume:
        comparison.take_up()
    try:
        comparison.run()
    except EagleError as error:
        if comparison.trials:
            error.way_out = f"{error.way_out} {_GO_ON}".lstrip()
        raise
    return comparison.result()


@attrs.define(eq=False)
class _Comparison:
    """One comparison on its way."""

    machine: Machine
    plan: ComparePlan
    ledger: Path | None
    timeout_s: float
    progress: Progress
    bench_settings: dict[str, Any]
    id: str = attrs.field(factory=lambda: uuid.uuid4().hex[:12])
    trials: list[Trial] = attrs.field(factory=list)
    failures: dict[str, int] = attrs.field(factory=dict)
    notes: list[str] = attrs.field(factory=list)
    aborted: str = ""

    def take_up(self) -> None:
        """Finds what an interrupted comparison has measured."""
        found = measured_before(self.ledger, self.plan)
        if found:
            self.id, self.trials = found
            self.notes.append(f"{len(self.trials)} restarts were measured before and are kept")

    def run(self) -> None:
        """Measures what the schedule has left."""
        done = {(trial.profile, trial.restart) for trial in self.trials}
        left = [one for one in self.plan.schedule if one not in done]
        if not left:
            return
        reset(self.machine, progress=self.progress)
        band = Band.around(look(self.machine))
        for number, (name, restart) in enumerate(left, 1):
            if self.failures.get(name, 0) >= MOST_FAILURES:
                continue
            at = f"{len(done) + number} of {len(self.plan.schedule)}"
            self.progress(Step(f"$ compare: {name}, restart {restart} ({at})"))
            trial = self._trial(self._profile(name), restart)
            warm = cool_down(
                self.machine,
                band,
                limit_s=self.plan.protocol.cool_down_s,
                progress=self.progress,
            )
            if warm:
                self.notes.append(f"after {name}, restart {restart}: {warm}")
            self._keep(trial)
            if self.aborted:
                return

    def result(self) -> CompareResult:
        """The comparison with its verdicts."""
        names = [profile.name for profile in self.plan.profiles]
        baseline, *others = [
            Restarts(name, tuple(sorted(self._of(name), key=lambda trial: trial.restart)))
            for name in names
        ]
        protocol = self.plan.protocol
        found = verdicts(
            baseline,
            others,
            alpha=protocol.alpha,
            smallest_pct=protocol.smallest_pct,
            draft_tokens={profile.name: draft_tokens(profile) for profile in self.plan.profiles},
            host=self.machine.name,
        )
        return CompareResult(
            host=self.machine.name,
            id=self.id,
            plan=self.plan,
            restarts=(baseline, *others),
            verdicts=found,
            aborted=self.aborted,
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _of(self, name: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.profile == name]

    def _profile(self, name: str) -> Profile:
        return next(profile for profile in self.plan.profiles if profile.name == name)

    def _keep(self, trial: Trial) -> None:
        self.trials.append(trial)
        failed = not trial.requests
        name = trial.profile
        self.failures[name] = self.failures.get(name, 0) + 1 if failed else 0
        if self.failures[name] < MOST_FAILURES:
            return
        told = f"{name} failed {MOST_FAILURES} times in a row and was given up"
        if name == self.plan.profiles[0].name:
            self.aborted = f"{told}; without a baseline there is nothing to compare with"
        else:
            self.notes.append(told)

    def _trial(self, profile: Profile, restart: int) -> Trial:
        try:
            launched = launch_and_record(
                self.ledger,
                self.machine,
                profile,
                timeout_s=self.timeout_s,
                progress=self.progress,
            )
        except (ServerDied, ServerNotReady) as failed:
            self._end(profile.name)
            return Trial(profile=profile.name, restart=restart, excluded=(failed.problem,))
        except BaseException:
            self._end(profile.name)
            raise
        try:
            return self._measured(profile, restart, launched)
        except CheckFailed as failed:  # it died under the requests, say
            return Trial(profile=profile.name, restart=restart, excluded=(failed.problem,))
        finally:
            self._end(profile.name)

    def _measured(self, profile: Profile, restart: int, launched: LaunchReport) -> Trial:
        environment = launched.environment
        if environment is not None and environment.exit_status == 1:
            # It would be left out: it is not worth measuring.
            parts = {"environment": environment.to_dict()}
            return self._of_parts(profile.name, restart, parts, launched.run_id)
        protocol = self.plan.protocol
        text = prompts.prompt(protocol.prompt)
        result = bench_and_record(
            self.ledger,
            self.machine,
            launched.server.name,
            Settings(protocol.runs, protocol.tokens, protocol.warmups, text),
            progress=self.progress,
            **self.bench_settings,
        )
        if result.notice:
            self.notes.append(result.notice)
        parts = bench_parts(result)
        if environment is not None:
            parts["environment"] = environment.to_dict()
        if result.run_id is not None:
            parts = self._recorded(result.run_id, profile.name, restart) or parts
        return self._of_parts(profile.name, restart, parts, result.run_id)

    def _of_parts(
        self, profile: str, restart: int, parts: dict[str, Any], run_id: int | None
    ) -> Trial:
        keep = self.plan.protocol.keep_throttled
        return Trial.of_parts(profile, restart, parts, run_id, keep_throttled=keep)

    def _recorded(self, run_id: int, profile: str, restart: int) -> dict[str, Any]:
        """Marks a run as the comparison's, and gives all that was recorded of it."""
        mark = {
            "id": self.id,
            "identity": self.plan.identity,
            "profile": profile,
            "restart": restart,
            "protocol": self.plan.protocol.to_dict(),
        }
        try:
            with Ledger.open(self.ledger) as ledger:
                ledger.update(run_id, {"comparison": mark})
                parts: dict[str, Any] = ledger.run(run_id).to_dict()["parts"]
                return parts
        except LedgerError as error:
            self.notes.append(f"not marked as the comparison's: {error}")
            return {}

    def _end(self, name: str) -> None:
        """Ends a server, however its measurement went; the next reset would anyway."""
        with contextlib.suppress(EagleError):
            stop(self.machine, name, progress=self.progress)


def measured_before(path: Path | None, plan: ComparePlan) -> tuple[str, list[Trial]] | None:
    """The latest comparison of the same identity in the ledger: its id, and what it has measured.

    Raises:
        LedgerError: if the ledger cannot be read.
    """
    names = {profile.name for profile in plan.profiles}
    found: dict[tuple[str, int], Trial] = {}
    latest = ""
    with Ledger.open(path) as ledger:
        for header in ledger.runs(limit=LOOK_BACK, host=plan.host):
            if header.profile not in names or header.outcome != "benched" or header.id is None:
                continue
            run = ledger.run(header.id)
            mark = run.part("comparison") or {}
            if mark.get("identity") != plan.identity or (latest and mark["id"] != latest):
                continue
            latest = mark["id"]
            place = (mark["profile"], int(mark["restart"]))
            parts = run.to_dict()["parts"]
            keep = plan.protocol.keep_throttled
            trial = Trial.of_parts(*place, parts, header.id, keep_throttled=keep)
            found.setdefault(place, trial)
    return (latest, list(found.values())) if latest else None
