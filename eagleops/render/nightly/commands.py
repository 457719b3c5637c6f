"""What to type next: for each fault, the command that shows more of it, or ends it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from eagleops.nights.finding import Finding
from eagleops.workflows.nightly.figures import CHECKS, SPEED
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.trend import Story, TrendReport

_STATUS = {"xid", "ecc", "ecc-corrected", "rows", "pcie", "fan", "power", "temperature"}
_DOCTOR = {"reach", "host-key", "disk"}
_RESET = {"stale", "idle-memory"}
# The metric that a kind of check is about.
METRICS = {**{check: metric for metric, check in CHECKS.items()}, "pin": SPEED}


def commands(report: NightReport, finding: Finding) -> tuple[str, ...]:
    """The lines for a shell, the one that tells most first; empty where none helps."""
    return tuple(map(line, _argvs(report, finding)))


def line(argv: tuple[str, ...]) -> str:
    """A command of ours as a line for a shell."""
    return shlex.join(("eagleops", *argv))


def again(report: NightReport, host: str | None = None) -> str:
    """The line that looks again: the suite, on one of its hosts or on all."""
    on = ("--host", host) if host else ()
    return line(("nightly", "--suite", report.night.suite, *on))


def _argvs(report: NightReport, finding: Finding) -> Iterator[tuple[str, ...]]:
    kind, host = finding.kind, finding.host
    if kind in _DOCTOR or kind == "doctor":
        yield "doctor", "--host", host
    elif kind in _STATUS or kind == "idle-throttling":
        yield "status", "--host", host
    elif kind in _RESET:
        yield "reset-gpus", "--host", host, "--dry-run"
    elif kind in METRICS:
        yield from _of_figure(report, finding)
    elif finding.run_id is not None:
        yield "show", "--run", str(finding.run_id)
    elif kind in {"launch", "environment", "throttling"}:
        yield "runs", "--host", host, "--profile", finding.subject


def _of_figure(report: NightReport, finding: Finding) -> Iterator[tuple[str, ...]]:
    """What else changed with a figure, then its history."""
    metric = METRICS[finding.kind]
    trend = trend_of(report, finding.host, finding.subject, metric)
    if trend is not None and trend.stories:
        yield diff(trend.stories[-1])
    more = () if metric == SPEED else ("--metric", metric)
    yield "trend", "--profile", finding.subject, "--host", finding.host, *more


def diff(story: Story) -> tuple[str, ...]:
    """The command that shows all that changed with a figure."""
    told = story.diff
    return "diff", "--run", str(told.after.id), "--against", str(told.before.id)


def trend_of(report: NightReport, host: str, profile: str, metric: str) -> TrendReport | None:
    """The history of one figure; None where it was not followed."""
    key = (host, profile, metric)
    trends = (t for t in report.trends if (t.host, t.profile, t.series.metric) == key)
    return next(trends, None)
