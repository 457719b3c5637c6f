"""A measurement against the profile's own history, and against the run that is pinned."""

from __future__ import annotations

from typing import Any

from eagleops.errors import EagleError
from eagleops.inventory.suite import ProfileCheck
from eagleops.ledger.diff import in_words
from eagleops.measuring.findings import reason_words
from eagleops.measuring.telemetry import windows
from eagleops.workflows.bench_result import BenchResult
from eagleops.workflows.nightly.report import CANNOT_TELL
from eagleops.workflows.nightly.visit import Visit
from eagleops.workflows.trend import TrendReport, trend

SPEED, ACCEPT_LENGTH = "tok_s", "accept_length"
# The check of each metric.
CHECKS = {SPEED: "speed", ACCEPT_LENGTH: "accept-length"}
NOTHING_LEFT_OUT_PCT = 100.0
MOST_CAUSES = 4


def judge(visit: Visit, check: ProfileCheck, measured: BenchResult) -> None:
    """The checks of one measurement: throttling, speed, accept length, pin."""
    name = measured.profile
    if measured.run_id is None:
        why = f"the measurement is in no ledger: {measured.notice}"
        visit.skipped("speed", why, name, facts={CANNOT_TELL: True})
        return
    told = _trend(visit, name, SPEED, check)
    _throttling(visit, measured, told)
    if told is not None:
        _judge_drift(visit, told, measured)
        _judge_pin(visit, told, measured)
    if measured.cycles is not None and visit.rule("accept-length", name).on:
        accepted = _trend(visit, name, ACCEPT_LENGTH, None)
        if accepted is not None:
            _judge_drift(visit, accepted, measured)


def trend_of(visit: Visit, profile: str, metric: str, check: ProfileCheck | None) -> TrendReport:
    """The history of a figure as the suite's limits have it.

    Raises:
        EagleError: as :func:`eagleops.workflows.trend.trend`.
    """
    smallest = visit.rule(CHECKS[metric], profile).limit or 0
    pin, throttling = visit.rule("pin", profile), visit.rule("throttling", profile)
    more: dict[str, Any] = {}
    if check is not None and check.pin is not None and pin.on:
        more = {"pin": check.pin, "pin_limit_pct": pin.limit or 0}
    limit_pct = throttling.limit if throttling.on else None
    return trend(
        visit.ledger,
        profile,
        visit.host,
        metric=metric,
        smallest_pct=smallest,
        throttled_pct=NOTHING_LEFT_OUT_PCT if limit_pct is None else limit_pct,
        **more,
    )


def _trend(
    visit: Visit, profile: str, metric: str, check: ProfileCheck | None
) -> TrendReport | None:
    """The trend, kept for the report; None where there is none, which is told."""
    kind = CHECKS[metric]
    pinned = check is not None and check.pin is not None
    try:
        told = trend_of(visit, profile, metric, check)
    except EagleError as error:
        why = f"cannot be judged: {error.in_a_line}"
        if not pinned:
            visit.skipped(kind, why, profile, facts={CANNOT_TELL: True})
            return None
        # The pinned run may be what is missing: the history is judged without it.
        visit.skipped("pin", why, profile, facts={CANNOT_TELL: True})
        return _trend(visit, profile, metric, None)
    visit.log.trends[visit.host, profile, metric] = told
    for notice in told.notices:
        visit.log.notice(notice)
    return told


def _judge_drift(visit: Visit, told: TrendReport, measured: BenchResult) -> None:
    kind, profile = CHECKS[told.series.metric], told.series.profile
    drift, latest = told.drift, told.series.latest
    if latest is None or latest.run_id != measured.run_id:
        visit.skipped(kind, "tonight's run is not the latest of its history", profile)
        return
    digits = told.metric.digits + 1
    figure = told.metric.show(latest.value)
    more = {
        "value": round(latest.value, digits),
        "unit": told.series.unit,
        "limit": None if drift.limit is None else round(drift.limit, digits),
        "run_id": latest.run_id,
        "facts": {"drift": drift.to_dict()},
    }
    if latest.excluded:
        message = f"{figure}, which does not count: {latest.excluded}"
        visit.skipped(kind, message, profile, **more)
    elif drift.state == "changed":
        visit.faulty(kind, f"{drift.words}{_causes(told)}", profile, **more)
    elif drift.latest_worse:
        visit.warned(kind, drift.words, profile, **more)
    else:
        visit.passed(kind, drift.words, profile, **more)


def _causes(told: TrendReport) -> str:
    """What else changed then, the likeliest first."""
    since = told.drift.since
    story = None if since is None else told.story(since)
    if story is None:
        return ""
    if not story.causes:
        return " Nothing else that is recorded changed then."
    return f" Changed then: {in_words(story.causes, MOST_CAUSES)}."


def _judge_pin(visit: Visit, told: TrendReport, measured: BenchResult) -> None:
    pin, profile = told.pin, told.series.profile
    if pin is None:
        return
    latest = told.series.latest
    if latest is not None and latest.excluded:
        visit.skipped("pin", f"tonight's run does not count: {latest.excluded}", profile)
        return
    change = pin.change_pct
    more = {
        "value": None if change is None else round(change, 2),
        "limit": -pin.limit_pct,
        "run_id": measured.run_id,
        "facts": {"pin": pin.to_dict()},
    }
    verdict = visit.passed if pin.ok else visit.faulty
    verdict("pin", pin.words, profile, **more)


def _throttling(visit: Visit, measured: BenchResult, told: TrendReport | None) -> None:
    name = measured.profile
    gpus = windows(measured.telemetry)
    if not gpus:
        why = "the GPUs were not watched: " + ("; ".join(measured.notes) or "no telemetry")
        visit.skipped("throttling", why, name, run_id=measured.run_id)
        return
    held = [(share, gpu.index, reason) for gpu in gpus for reason, share in gpu.throttled.items()]
    held.sort(key=lambda one: (-one[0], one[1]))
    worst_pct = 100 * held[0][0] if held else 0.0
    facts = {"gpus": {str(gpu.index): dict(gpu.throttled) for gpu in gpus if gpu.throttled}}
    more = {"value": round(worst_pct, 2), "run_id": measured.run_id, "facts": facts}
    if worst_pct <= (visit.rule("throttling", name).limit or 0):
        visit.passed("throttling", f"no GPU was slowed down of {len(gpus)}", name, **more)
        return
    words = ", ".join(
        f"GPU {index}: {reason_words(reason)} for {100 * share:.0f} % of the time"
        for share, index, reason in held[:MOST_CAUSES]
    )
    latest = None if told is None else told.series.latest
    if latest is not None and latest.run_id == measured.run_id and not latest.excluded:
        usual = f"{words}: as in most of its runs, so it is part of the level"
        visit.passed("throttling", usual, name, **more)
    else:
        meaning = "What was measured says nothing of the software"
        visit.faulty("throttling", f"{words}. {meaning}.", name, **more)
