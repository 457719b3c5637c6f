"""A night from begin to end: the checks, the reports, the message, and old nights removed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import attrs

from eagleops.comparison.loading import load
from eagleops.errors import EagleError, ProfileError, ReportsNotWritten
from eagleops.inventory import Inventory
from eagleops.inventory.suite import SuiteEntry, WebhookEntry
from eagleops.library.nightly_log import logged
from eagleops.machine import Fleet
from eagleops.nights.message import json_message, slack_message, worth_telling
from eagleops.nights.missed import news_with_missed
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore
from eagleops.workflows.nightly.night_log import told_nights
from eagleops.workflows.nightly.plan import NightPlan, plan_night
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.nightly.run import nightly as run_night
from eagleops.workflows.progress import Progress, events_of, unwatched
from eagleops.workflows.secrets import revealed

REPORTS = "reports"
_SHAPES = {"json": json_message, "slack": slack_message}
# What ends a program whose terminal or service is gone: a night then ends in order.
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


@attrs.define(eq=False)
class Nights:
    """The nights of one suite.

    Attributes:
        suite: What is checked.
        ledger: The ledger's file; nights lie beside it.
    """

    inventory: Inventory
    suite: SuiteEntry
    _fleet: Fleet

    @property
    def ledger(self) -> Path | None:
        """The ledger's file; None for the user's own."""
        return self.inventory.ledger

    @property
    def store(self) -> NightStore:
        """Where its nights are kept."""
        return NightStore.beside(self.ledger)

    @property
    def reports(self) -> Path:
        """The folder of its reports."""
        if self.suite.reports is not None:
            return self.suite.reports
        return self.store.folder_of(self.suite.name) / REPORTS

    def plan(self, hosts: Sequence[str] = ()) -> NightPlan:
        """What a night is going to do. Asks no machine.

        Raises:
            UsageError: if a host is not one of the suite's.
            InventoryError, ProfileError: if a host or a profile is not there.
        """
        from eagleops.ledger.run import now_utc

        planned = plan_night(self.inventory, self.suite, hosts)
        found = self.store.unfinished(self.suite.name, self.suite.resume_within_s, now_utc())
        if found is None or found.hosts != planned.hosts:
            return planned
        return attrs.evolve(planned, take_up=found.began_utc)

    def run(
        self,
        hosts: Sequence[str] = (),
        *,
        fresh: bool = False,
        progress: Progress = unwatched,
        **settings: Any,
    ) -> NightReport:
        """Makes the checks, writes the reports, tells what is new, removes old nights.

        Args:
            hosts: Of the suite's hosts, those alone; all of them without.
            fresh: Begin a night of its own where one was cut off.
            progress: Told of each step.
            settings: As :func:`eagleops.workflows.nightly.run.nightly` takes them.

        Raises:
            UsageError, InventoryError, ProfileError: before anything is touched.
            NightsError: if nights can be neither read nor written, or another process runs the
                suite.
        """
        self.plan(hosts)
        self._ready()
        folder = self.store.folder_of(self.suite.name)
        with _ended_in_order(), logged(folder, progress) as (told, ended):
            report = run_night(
                self._fleet.machine,
                self.inventory,
                self.suite,
                store=self.store,
                ledger=self.ledger,
                hosts=hosts,
                fresh=fresh,
                tell=partial(self._tell, progress=told),
                progress=told,
                **settings,
            )
            ended(report, self._secrets())
        try:
            self._prune(report.night)
        except (EagleError, OSError) as error:
            return _troubled(report, f"Old nights were not removed: {error}")
        return report

    def _tell(
        self,
        report: NightReport,
        keep: Callable[[str, Mapping[str, Any]], None],
        *,
        progress: Progress,
    ) -> NightReport:
        """Writes the reports, and sends the messages that were not sent before."""
        report = self._written(report)
        for name, webhook in self.suite.webhooks.items():
            told = dict(report.night.told.get(name) or {})
            if not told.get("ok"):
                sent = self._sent(name, webhook, report, progress)
                if sent is None:
                    continue
                keep(name, sent)
                told = dict(sent)
            night = attrs.evolve(report.night, told={**report.night.told, name: told})
            report = attrs.evolve(report, night=night, deliveries={**report.deliveries, name: told})
        return report

    def _written(self, report: NightReport) -> NightReport:
        """The report with the places of its files; what cannot be written is told in it."""
        from eagleops.render.nightly.writing import write_all

        try:
            made = write_all(report, self.reports, self.suite.prometheus, secrets=self._secrets())
        except ReportsNotWritten as error:
            return _troubled(attrs.evolve(report, reports=error.written), str(error))
        return attrs.evolve(report, reports={kind: str(place) for kind, place in made.items()})

    def _secrets(self) -> tuple[str, ...]:
        """What its webhooks and profiles hold, as far as it can be had."""
        return self.plan().secrets

    def _ready(self) -> None:
        """Makes sure, before hours of measuring, that they can be judged and shown.

        Raises:
            UsageError: if a package is missing, or reports cannot be written.
        """
        from eagleops.render.nightly.writing import ready

        ready(self.reports, self.suite.prometheus)
        if self.suite.profiles:
            load("ruptures")
            load("scipy.stats")

    def _prune(self, tonight: Night) -> None:
        from eagleops.render.nightly.writing import prune

        keep = self.suite.keep_nights
        self.store.prune(self.suite.name, keep, until=tonight)
        prune(self.reports, self.suite.name, keep, until=tonight)

    def _sent(
        self, name: str, webhook: WebhookEntry, report: NightReport, progress: Progress
    ) -> Mapping[str, Any] | None:
        """What became of a message; None where there is nothing to tell this webhook.

        What did not get through in the nights before is told with it.
        """
        night = report.night
        history = told_nights(self.store.history(self.suite.name, facts=False))
        news = news_with_missed(
            history, night, lambda before: (before.told.get(name) or {}).get("ok")
        )
        if not worth_telling(night, news):
            return None
        try:
            url, headers = revealed(webhook.url), revealed(webhook.headers)
        except ProfileError as error:
            return {"ok": False, "status": None, "attempts": 0, "problem": str(error)}
        from eagleops.notify.webhook import Webhook, deliver

        # A receiver that does not answer is waited for a minute and a half.
        events_of("send", progress)({"event": "state", "detail": f"to {name}"})
        message = _SHAPES[webhook.shape](
            night, news, report=report.reports.get("html"), secrets=self._secrets()
        )
        key = f"{night.uuid}-{webhook.digest}"
        return deliver(Webhook(url, headers), message, key=key).to_dict()


def _troubled(report: NightReport, trouble: str) -> NightReport:
    return attrs.evolve(report, trouble="\n".join(filter(None, (report.trouble, trouble))))


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Takes what ends a program for a Ctrl-C meanwhile; only a main thread hears of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {ending: signal.getsignal(ending) for ending in _ENDINGS}

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for ending, handler in before.items():
        if handler is not signal.SIG_IGN:  # as nohup has it
            signal.signal(ending, interrupt)
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, signal.SIG_DFL if handler is None else handler)
