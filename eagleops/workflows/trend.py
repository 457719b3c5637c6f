"""Trend: how a profile's figure moved over its runs, when it changed, and what else did then."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from eagleops.drift.judging import SMALLEST_PCT, ChangePoint, Drift, judge
from eagleops.drift.metrics import METRICS, Metric, metric_of
from eagleops.drift.reference import LIMIT_PCT, Against, against
from eagleops.drift.series import THROTTLED_PCT, Point, Series, series_of
from eagleops.errors import UsageError
from eagleops.inventory.problems import nearest
from eagleops.ledger import Header, Ledger, Run
from eagleops.ledger.diff import Change, RunDiff, diff
from eagleops.view import View
from eagleops.workflows import trend_view

LIMIT = 120
# Runs that were never measured stand among the others; so many times the limit are looked at.
LOOK_BACK = 10
# Of the latest runs, so many profiles are named to who asks for another.
NAMED_RUNS, MOST_NAMED = 1000, 5
# Whatever a point is made of; telemetry, which is long, is read where a GPU was slowed down.
PARTS = ("bench", "launch", "environment")


@attrs.frozen
class Story:
    """A change, and what else changed then.

    Attributes:
        diff: From the last run that counts before the change may have begun to the first by
            which it had.
        causes: What differs between them, what still did at the level's end first; among those
            what is likelier to move the figure.
        lasting: How many of ``causes`` still differed at the end of that level.
    """

    change: ChangePoint
    diff: RunDiff
    causes: tuple[Change, ...]
    lasting: int

    def to_dict(self) -> dict[str, Any]:
        """The story as JSON."""
        return {
            "change": self.change.to_dict(),
            "before": self.diff.before.id,
            "after": self.diff.after.id,
            "causes": [cause.to_dict() for cause in self.causes],
            "lasting": self.lasting,
            "not_compared": list(self.diff.not_compared),
        }


@attrs.frozen(kw_only=True)
class TrendReport:
    """One metric of one profile on one host over time.

    Attributes:
        stories: One for each change whose runs are in the ledger, the oldest first.
        pin: The latest run against the pinned one; None where none is pinned.
        ledger: Its file.
        notices: What is worth knowing besides.
        report: The file of its page; None where none was written.
    """

    series: Series
    drift: Drift
    stories: tuple[Story, ...] = ()
    pin: Against | None = None
    ledger: str = ""
    notices: tuple[str, ...] = ()
    report: str | None = None

    @property
    def host(self) -> str:
        """As in hosts.yaml."""
        return self.series.host

    @property
    def profile(self) -> str:
        """The profile's name."""
        return self.series.profile

    @property
    def metric(self) -> Metric:
        """What is followed."""
        return METRICS[self.series.metric]

    @property
    def ok(self) -> bool:
        """Whether the figure is not worse than it was, and keeps up with the pinned run."""
        return self.drift.ok and (self.pin is None or self.pin.ok)

    @property
    def exit_status(self) -> int:
        """1 if it changed for the worse or is below the pin."""
        return 0 if self.ok else 1

    def story(self, change: ChangePoint) -> Story | None:
        """The story of that change; None where its runs are not in the ledger."""
        return next((story for story in self.stories if story.change == change), None)

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``trend --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "profile": self.profile,
            "metric": self.series.metric,
            "unit": self.series.unit,
            "better": self.metric.better,
            "points": [point.to_dict() for point in self.series.points],
            "drift": self.drift.to_dict(),
            "stories": [story.to_dict() for story in self.stories],
            "pin": None if self.pin is None else self.pin.to_dict(),
            "ledger": self.ledger,
            "notices": list(self.notices),
            "report": self.report,
        }

    def view(self) -> View:
        """A spark line, the changes and what else changed then, the latest runs."""
        return trend_view.view(self)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def trend(
    ledger: Path | None,
    profile: str,
    host: str,
    *,
    metric: str = "tok_s",
    limit: int = LIMIT,
    pin: int | str | None = None,
    smallest_pct: float = SMALLEST_PCT,
    pin_limit_pct: float = LIMIT_PCT,
    throttled_pct: float = THROTTLED_PCT,
    profiles: Collection[str] = (),
    hosts: Collection[str] = (),
) -> TrendReport:
    """Follows a figure of a profile on a host through the ledger.

    Args:
        ledger: Its file; None for the user's own.
        profile: Its name, as it is recorded.
        host: As in hosts.yaml.
        metric: One of :data:`eagleops.drift.metrics.METRICS`.
        limit: How many measured runs, the latest.
        pin: A run by its number or its uuid's beginning: the latest run must keep up with it,
            and the level of its time is accepted.
        smallest_pct: The smallest change that counts, in percent.
        pin_limit_pct: How much worse than the pinned run the latest may be, in percent.
        throttled_pct: For how much of its time a measurement may be slowed down and still count.
        profiles: Those of hosts.yaml, so that who mistyped one is told.
        hosts: Likewise.

    Raises:
        UsageError: if there is no such metric, nothing was measured, a limit is 0, or the pinned
            run has no such figure; if ruptures or scipy is not installed.
        NoSuchRun: if the pinned run is in no ledger.
        LedgerError: if the ledger cannot be read.
    """
    followed = metric_of(metric)
    if limit < 1 or smallest_pct <= 0:
        raise UsageError(
            problem=f"{limit} runs and a smallest change of {smallest_pct:g} % tell no trend",
            way_out=f"One run at least, and more than 0 %; without: {LIMIT}, {SMALLEST_PCT:g} %.",
        )
    with Ledger.open(ledger) as opened:
        runs = _runs(opened, followed, profile, host, limit)
        series = series_of(runs, metric, throttled_pct=throttled_pct)
        if not series.points:
            raise _nothing(opened, followed, profile, host, profiles, hosts)
        pinned = None if pin is None else _pinned(opened, followed, pin)
        own = pinned is not None and (pinned.header.host, pinned.header.profile) == (host, profile)
        point = None if pinned is None else _point(pinned, followed)
        drift = judge(
            series,
            smallest_pct=smallest_pct,
            accepted_since=point.at if point is not None and own else None,
        )
        held = None if point is None else against(series, point, pin_limit_pct)
        return TrendReport(
            series=series,
            drift=drift,
            stories=tuple(_stories(opened, series, drift)),
            pin=held,
            ledger=str(opened.path),
            notices=tuple(_notices(opened, pinned, own=own)),
        )


def _runs(ledger: Ledger, metric: Metric, profile: str, host: str, limit: int) -> Iterator[Run]:
    """The latest runs that have a figure, with what a point is made of."""
    headers = ledger.runs(limit=limit * LOOK_BACK, profile=profile, host=host)
    for header in [one for one in headers if _measured(one, metric)][:limit]:
        run = ledger.run(header.id or 0, PARTS)
        bench = run.part("bench")
        if metric.heat and isinstance(bench, Mapping) and bench.get("throttled_runs"):
            run = ledger.run(header.id or 0, (*PARTS, "telemetry"))
        yield run


def _measured(header: Header, metric: Metric) -> bool:
    return (header.tok_s if metric.part == "bench" else header.ready_s) is not None


def _nothing(
    ledger: Ledger,
    metric: Metric,
    profile: str,
    host: str,
    profiles: Collection[str],
    hosts: Collection[str],
) -> UsageError:
    latest = ledger.runs(limit=NAMED_RUNS)
    known = {(one.profile, one.host): None for one in latest if _measured(one, metric)}
    if (profile, host) in known:
        way_out = "It was measured without one: only a server that speculates has it."
    else:
        told = ", ".join(f"{one} on {where}" for one, where in [*known][:MOST_NAMED])
        near = _near(profile, {*profiles, *(one for one, _ in known)})
        near = near or _near(host, {*hosts, *(where for _, where in known)})
        parts = [near, f"These have runs: {told}." if told else ""]
        if not near:
            launch = f"eagleops launch --profile {profile} --host {host}"
            parts.append(f"Measure it: {launch}, eagleops bench.")
        way_out = " ".join(filter(None, parts))
    return UsageError(
        problem=f"no run of {profile} on {host} has the figure {metric.name} ({metric.words})",
        where=str(ledger.path),
        way_out=way_out,
    )


def _near(name: str, known: Collection[str]) -> str:
    """A question for who may have mistyped a name; empty for one that is known, or near none."""
    asked = nearest(name, sorted(known), "")
    return asked if name not in known and asked.endswith("?") else ""


def _pinned(ledger: Ledger, metric: Metric, pin: int | str) -> Run:
    run = ledger.run(pin, PARTS)
    if metric.value(run) is None:
        raise UsageError(
            problem=f"run {pin} is pinned, and has no figure {metric.name} ({metric.words})",
            where=str(ledger.path),
            way_out="Pin a run that was measured: eagleops runs.",
        )
    return run


def _point(run: Run, metric: Metric) -> Point:
    return Point(run.header.created_utc, metric.value(run) or 0.0, run.id)


def _notices(ledger: Ledger, pinned: Run | None, *, own: bool) -> Iterator[str]:
    if ledger.notice:
        yield ledger.notice
    if pinned is not None and not own:
        header = pinned.header
        yield f"Run {header.id}, which is pinned, is of {header.profile} on {header.host}."


def _stories(ledger: Ledger, series: Series, drift: Drift) -> Iterator[Story]:
    counted = series.counted
    for number, change in enumerate(drift.changes):
        follower = drift.changes[number + 1] if number + 1 < len(drift.changes) else None
        last = counted[-1] if follower is None else follower.before
        first = counted[max(0, counted.index(change.earliest) - 1)]
        if first.run_id is not None and change.latest.run_id is not None:
            yield _story(ledger, change, first, last)


def _story(ledger: Ledger, change: ChangePoint, first: Point, last: Point) -> Story:
    before, after = ledger.run(first.run_id or 0), ledger.run(change.latest.run_id or 0)
    told = diff(before, after)
    still = told if last == change.latest else diff(before, ledger.run(last.run_id or 0))
    kept = set(still.changes)
    lasting = [cause for cause in told.changes if cause in kept]
    passing = [cause for cause in told.changes if cause not in kept]
    return Story(change, told, (*lasting, *passing), len(lasting))
