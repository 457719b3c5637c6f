"""The night as metrics, in the text format that node_exporter's textfile collector reads.

Names follow Prometheus' rules (https://prometheus.io/docs/practices/naming/): base units, the unit
at a name's end, ``_total`` for counters alone, of which a night has none. What a check found is a
series for each state, one of them 1 and the others 0, as node_exporter's own
``node_systemd_unit_state`` has it: the text format has no type StateSet, a series that stays lets
an alert end, and a label ``state`` reads better than a number that means one.

The collector refuses timestamps, and serves the file of a job that has died for ever. So the time
of the last completion is a metric itself: ``time() - it > 90000`` is the alert for silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.comparison.loading import load
from eagleops.nights.finding import STATES, Finding
from eagleops.nights.night import OUTCOMES, Night, instant
from eagleops.render.nightly.safe import presentable
from eagleops.render.nightly.words import took_s
from eagleops.workflows.nightly.report import NightReport

# A unit of a check's figure: the base unit as names end, and what one is of the other.
BASE_UNITS: Mapping[str, tuple[str, float]] = {
    "B": ("bytes", 1),
    "KiB": ("bytes", 2**10),
    "MiB": ("bytes", 2**20),
    "GiB": ("bytes", 2**30),
    "TiB": ("bytes", 2**40),
    "ms": ("seconds", 1e-3),
    "s": ("seconds", 1),
    "°C": ("celsius", 1),
    "W": ("watts", 1),
    "%": ("ratio", 1e-2),
    "MHz": ("hertz", 1e6),
    "tok/s": ("tokens_per_second", 1),
    "tokens": ("tokens", 1),
    "errors": ("errors", 1),
    "rows": ("rows", 1),
    "processes": ("processes", 1),
    "files": ("files", 1),
}
# A figure with a history: its metric's name, what it is, and the base unit in its own.
FIGURES: Mapping[str, tuple[str, str, float]] = {
    "tok_s": ("decode_tokens_per_second", "Decode speed of one stream", 1),
    "accept_length": ("accepted_tokens_per_cycle", "Tokens that a verify cycle yields", 1),
    "ttft_ms": ("first_token_seconds", "Time to the first token", 1e-3),
    "cycle_ms": ("cycle_seconds", "Time of one verify cycle", 1e-3),
    "ready_s": ("ready_seconds", "Time from a server's start until it is ready", 1),
}
Labels = Mapping[str, str]


@attrs.define
class _Family:
    """One metric: what it says, and its samples."""

    name: str
    help: str
    samples: list[tuple[Labels, float]] = attrs.field(factory=list)

    def add(self, value: float | bool, **labels: str) -> None:
        self.samples.append((labels, float(value)))


def text(report: NightReport, secrets: Iterable[str] = ()) -> str:
    """The report as a textfile for node_exporter.

    Every series has the label ``suite``, so that the files of two suites stand side by side.

    Args:
        report: What the night came to.
        secrets: Values to be left out, whatever name they stand under.

    Raises:
        UsageError: if prometheus_client is not installed.
    """
    report = presentable(report, secrets)
    core = load("prometheus_client.core")
    exposition = load("prometheus_client.exposition")

    class _Metrics:
        def collect(self) -> Iterator[Any]:
            for family in _families(report):
                metric = core.GaugeMetricFamily(family.name, family.help)
                for labels, value in family.samples:
                    told = {"suite": report.night.suite, **labels}
                    metric.add_sample(family.name, told, value)
                yield metric

    encoded: bytes = exposition.generate_latest(_Metrics())
    return encoded.decode("utf-8")


def _families(report: NightReport) -> Iterator[_Family]:
    found = (*_of_the_night(report), *_of_checks(report), *_of_faults(report), *_of_trends(report))
    yield from (family for family in found if family.samples)


def _of_the_night(report: NightReport) -> Sequence[_Family]:
    night = report.night
    started = _Family("eagleops_nightly_start_timestamp_seconds", "When the night began.")
    started.add(_timestamp(night.began_utc))
    completed = _Family(
        "eagleops_nightly_completion_timestamp_seconds",
        "When the last night came to an end, whatever it found.",
    )
    well = _Family(
        "eagleops_nightly_success_timestamp_seconds",
        "When the last night came to an end in which no check failed.",
    )
    took = _Family("eagleops_nightly_duration_seconds", "How long the night took.")
    ended = [n for n in (*report.history, night) if n.ended_utc is not None]
    if ended:
        completed.add(_timestamp(str(ended[-1].ended_utc)))
    good = [n for n in ended if _is_well(n)]
    if good:
        well.add(_timestamp(str(good[-1].ended_utc)))
    if (duration_s := took_s(night)) is not None:
        took.add(duration_s)
    outcome = _Family("eagleops_nightly_outcome", "How the night ended: 1 for its outcome.")
    for name in OUTCOMES:
        outcome.add(night.outcome == name, outcome=name)
    status = _Family("eagleops_nightly_exit_status", "The exit status of the command.")
    status.add(report.exit_status)
    about = _Family("eagleops_nightly_info", "Always 1: which eagleops on which client.")
    about.add(1, version=night.eagleops, client=night.client)
    return started, completed, well, took, outcome, status, about


def _is_well(night: Night) -> bool:
    return night.outcome == "done" and all(found.state != "fail" for found in night.findings)


def _of_checks(report: NightReport) -> Sequence[_Family]:
    state = _Family(
        "eagleops_nightly_check_state", "What the check found: 1 for its state, 0 for the others."
    )
    figures: dict[str, _Family] = {}
    for finding in (found for of_host in report.by_host.values() for found in of_host):
        for name in STATES:
            state.add(finding.state == name, host=finding.host, check=finding.id, state=name)
        for role in ("value", "limit"):
            _add_figure(figures, finding, role)
    return state, *(figures[name] for name in sorted(figures))


def _add_figure(figures: dict[str, _Family], finding: Finding, role: str) -> None:
    told = getattr(finding, role)
    if not isinstance(told, (int, float)):
        return
    base, factor = BASE_UNITS.get(finding.unit, ("", 1))
    name = f"eagleops_nightly_check_{role}" + (f"_{base}" if base else "")
    unit = {} if base else {"unit": finding.unit}
    said = {"value": "What the check compared", "limit": "The check's limit"}[role]
    ending = f", in {base.replace('_', ' ')}." if base else ", in the unit that it has."
    family = figures.setdefault(name, _Family(name, said + ending))
    family.add(told * factor, host=finding.host, check=finding.id, **unit)


def _of_faults(report: NightReport) -> Sequence[_Family]:
    began = _Family(
        "eagleops_nightly_fault_start_timestamp_seconds", "When a fault that stands began."
    )
    for fault in report.news.open:
        labels = {"host": fault.host, "check": fault.check, "state": fault.state}
        began.add(_timestamp(fault.began_utc), **labels)
    return (began,)


def _of_trends(report: NightReport) -> Sequence[_Family]:
    families: dict[str, _Family] = {}

    def add(name: str, said: str, value: float | None, labels: Labels) -> None:
        if value is not None:
            families.setdefault(name, _Family(name, said)).add(value, **labels)

    for trend in report.trends:
        series, drift = trend.series, trend.drift
        if series.metric not in FIGURES:
            continue
        name, said, factor = FIGURES[series.metric]
        labels = {"host": series.host, "profile": series.profile}
        latest = None if drift.latest is None else drift.latest.value * factor
        level = None if drift.level is None else drift.level * factor
        add(f"eagleops_nightly_{name}", f"{said}, as last measured.", latest, labels)
        add(
            f"eagleops_nightly_expected_{name}", f"{said}: the level of its history.", level, labels
        )
    return tuple(families.values())


def _timestamp(told_utc: str) -> float:
    return instant(told_utc).timestamp()
