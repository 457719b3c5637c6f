"""Nightly: a suite's pass over its hosts, unattended, as one night that is kept."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops._version import __version__
from eagleops.inventory import Inventory
from eagleops.inventory.suite import SuiteEntry
from eagleops.ledger.run import new_uuid, now_utc
from eagleops.machine import Machine
from eagleops.nights.faults import news
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore
from eagleops.phrases import minute
from eagleops.remote import process_table
from eagleops.workflows.nightly.limits import Limits
from eagleops.workflows.nightly.night_log import NightLog, told_nights, unsettled, without
from eagleops.workflows.nightly.plan import NightPlan, plan_night
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.nightly.visits import Visits
from eagleops.workflows.progress import Progress, unwatched

Tell = Callable[[NightReport, Callable[[str, Mapping[str, Any]], None]], NightReport]
REGAIN_S = 120.0
# Nights whose facts a host is compared with: one that was dead for so long is new.
NIGHTS_WITH_FACTS = 30
# How far back a night is looked for that left something to be put right.
NIGHTS_WITH_LEFTOVERS = 30


def nightly(
    machines: Callable[[str], Machine],
    inventory: Inventory,
    suite: SuiteEntry,
    *,
    store: NightStore,
    ledger: Path | None,
    hosts: Sequence[str] = (),
    fresh: bool = False,
    now: Callable[[], str] = now_utc,
    tell: Tell | None = None,
    regain_s: float = REGAIN_S,
    progress: Progress = unwatched,
    **bench_settings: Any,
) -> NightReport:
    """Makes a suite's checks; what it found is kept after each of them.

    A night that was cut off is taken up, and what it left on its hosts is put right. Hosts are
    looked at side by side, those of one machine one after the other; one profile is measured
    at a time.

    Args:
        machines: A machine by its name in the inventory.
        inventory: Whose profiles are launched.
        suite: What is checked.
        store: Where nights are kept.
        ledger: The ledger's file; None for the user's own.
        hosts: Of the suite's hosts, those alone; all of them without.
        fresh: Begin a night of its own where one was cut off.
        now: This client's clock, RFC 3339.
        tell: Called with the report before the night is closed, and with what keeps the fate
            of a message: writes reports and sends messages, once even if it is cut off.
        regain_s: How long a host that was lost is awaited, in seconds.
        progress: Told of each step.
        bench_settings: ``direct`` and ``api_key``, as
            :func:`eagleops.workflows.bench.bench` takes them.

    Raises:
        UsageError, InventoryError, ProfileError: before anything is touched.
        NightsError: if nights can be neither read nor written, or another process runs the suite.
    """
    plan = plan_night(inventory, suite, hosts)
    with store.lock(suite.name):
        log = _begun(plan, store, fresh=fresh, now=now)
        log.begin()
        limits = Limits(suite.limit_s)
        visits = Visits(
            machines, plan, log, limits, ledger, regain_s, progress, dict(bench_settings)
        )
        outcome = visits.run()
        night = log.ending(outcome, now())
        report = NightReport(
            night,
            news((*log.told_before, night), night),
            log.history(suite.history_nights),
            visits.trends(),
            notice="\n".join(filter(None, (*visits.notices(), store.notice))),
            trouble=log.trouble,
        )
        if tell is not None and outcome != "interrupted":
            report = tell(report, log.tell)
        ended = log.end(outcome, night.ended_utc or now())
        return attrs.evolve(report, night=ended)


def _begun(plan: NightPlan, store: NightStore, *, fresh: bool, now: Callable[[], str]) -> NightLog:
    """The night that was cut off, or a new one that has taken over what older ones left."""
    suite, began_utc = plan.suite, now()
    every = store.history(suite.name, facts=False)
    told_before = told_nights(every)
    # What an interrupted night saw is news of the next: it is held against nights before both.
    interrupted = len(every) - len(told_before)
    with_facts = told_nights(store.history(suite.name, NIGHTS_WITH_FACTS + interrupted))
    found = None if fresh else store.unfinished(suite.name, suite.resume_within_s, began_utc)
    if found is not None and found.hosts == plan.hosts:
        now_asked = attrs.evolve(found, asked=plan.asked)  # hosts.yaml may be another by now
        return NightLog(
            store, now_asked, with_facts, told_before, taken_up=True, secrets=plan.secrets
        )
    night = Night(
        suite=suite.name,
        uuid=new_uuid(),
        began_utc=began_utc,
        client=socket.gethostname(),
        user=process_table.user(os.geteuid()),
        eagleops=__version__,
        hosts=plan.hosts,
        asked=plan.asked,
    )
    log = NightLog(store, night, with_facts, told_before, secrets=plan.secrets)
    _take_over(log, store.latest(suite.name, NIGHTS_WITH_LEFTOVERS))
    return log


def _take_over(log: NightLog, nights: Iterable[Night]) -> None:
    """Notes tonight what older nights have left to be put right, and there no longer."""
    for old in nights:
        every = unsettled(old)
        left = {host: of for host, of in every.items() if host in log.night.hosts}
        for host in every.keys() - log.night.asked.keys():
            told = f"{host}: the night of {minute(old.began_utc)} left it as it was, and the suite "
            log.notice(f"{told}has it no more. Look: eagleops status --host {host}")
        for host, entries in left.items():
            mine = log.journal(host)
            log.note(host, **{name: mine.get(name) or entry for name, entry in entries.items()})
            log.notice(f"{host}: the night of {minute(old.began_utc)} left it as it was")
        if left:
            log.store.write(without(old, left))
