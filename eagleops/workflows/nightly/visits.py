"""The hosts of one night: side by side where they share nothing, until the night is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import EagleError
from eagleops.machine import Machine
from eagleops.nights.night import Outcome
from eagleops.phrases import minute
from eagleops.workflows.nightly.figures import CHECKS, trend_of
from eagleops.workflows.nightly.host_pass import HostPass
from eagleops.workflows.nightly.limits import Limits, interruptions
from eagleops.workflows.nightly.night_log import NightLog, unsettled
from eagleops.workflows.nightly.plan import NightPlan
from eagleops.workflows.nightly.visit import Visit
from eagleops.workflows.progress import Progress, Step
from eagleops.workflows.trend import TrendReport

POLL_S = 0.2


@attrs.define(eq=False)
class Visits:
    """What looks at the hosts of one night.

    Attributes:
        machines: A machine by its name in the inventory.
        plan: Whose hosts are looked at; those of one machine one after the other.
        log: Where what is found is kept.
        limits: What ends the night early.
        ledger: The ledger's file; None for the user's own.
        regain_s: How long a host that was lost is awaited.
        progress: Told of each step.
        bench_settings: As :func:`eagleops.workflows.bench.bench` takes them.
    """

    machines: Callable[[str], Machine]
    plan: NightPlan
    log: NightLog
    limits: Limits
    ledger: Path | None
    regain_s: float
    progress: Progress
    bench_settings: dict[str, Any]
    _measuring: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _passes: list[HostPass] = attrs.field(factory=list, init=False)
    _broken: list[BaseException] = attrs.field(factory=list, init=False)

    def run(self) -> Outcome:
        """Looks at every host, and says how the night ended."""
        groups = self._groups()
        if len(groups) > 1:
            self.progress = _headings_only(self.progress)
        with interruptions() as heard:
            for end in [self._begin(group) for group in groups]:
                while not end.wait(POLL_S):
                    if heard:
                        heard.clear()
                        self.limits.interrupt()
        if self._broken:
            raise self._broken[0]
        reasons = {one.ended.reason for one in self._passes if one.ended is not None}
        if self.limits.interrupted or "interrupted" in reasons:
            return "interrupted"
        return "time_limit" if reasons else "done"

    def trends(self) -> tuple[TrendReport, ...]:
        """The history of each figure that was judged, tonight or in the nights before."""
        found = []
        for visit in (one.visit for one in self._passes):
            for check, profile in visit.profiles:
                for metric in CHECKS:
                    key = (visit.host, profile.name, metric)
                    if key not in self.log.trends and visit.rule(CHECKS[metric], profile.name).on:
                        try:
                            told = trend_of(visit, profile.name, metric, check)
                        except EagleError:
                            continue  # nothing was ever measured, or nothing can be judged
                        self.log.trends[key] = told
                    if key in self.log.trends:
                        found.append(self.log.trends[key])
        return tuple(found)

    def notices(self) -> tuple[str, ...]:
        """What a person should know besides."""
        taken_up = ""
        if self.log.taken_up:
            began = minute(self.log.night.began_utc)
            taken_up = f"The night of {began} had been cut off, and was taken up."
        left = [
            f"{host}: not put right yet; the next night does it"
            for host in unsettled(self.log.night)
        ]
        return (*filter(None, (taken_up,)), *self.log.notices, *left)

    def _groups(self) -> list[list[str]]:
        """Hosts by the machine that they stand on."""
        by_machine: dict[str, list[str]] = {}
        for host in self.plan.hosts:
            by_machine.setdefault(self.plan.machine_of[host], []).append(host)
        return list(by_machine.values())

    def _begin(self, group: list[str]) -> threading.Event:
        """Looks at hosts on a thread of its own; what it gives is set at their end.

        An event, for a join that is interrupted takes a living thread for dead (CPython before
        3.13).
        """
        end = threading.Event()

        def work() -> None:
            try:
                self._visit(group)
            finally:
                end.set()

        threading.Thread(target=work, name=f"nightly {group[0]}", daemon=True).start()
        return end

    def _visit(self, group: list[str]) -> None:
        try:
            for host in group:
                one = HostPass(self._of(host))
                self._passes.append(one)
                one.run()
        except BaseException as error:  # noqa: BLE001 - it is raised where it can be told
            self._broken.append(error)

    def _of(self, host: str) -> Visit:
        return Visit(
            machine=self.machines(host),
            suite=self.plan.suite,
            inventory=self.plan.inventory,
            profiles=self.plan.profiles,
            log=self.log,
            watch=self.limits.watch(),
            ledger=self.ledger,
            tell=self.progress,
            measuring=self._measuring,
            bench_settings=self.bench_settings,
            regain_s=self.regain_s,
        )


def _headings_only(progress: Progress) -> Progress:
    """Of several hosts at once, what each begins: their steps would mix."""
    lock = threading.Lock()

    def tell(step: Step) -> None:
        if step.stage.startswith("$") and not step.event:
            with lock:
                progress(step)

    return tell
