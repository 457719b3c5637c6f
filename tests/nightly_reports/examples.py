"""Sixty nights of three hosts: what a store of nights and a ledger would hold of them.

On box1 a GPU is throttled in night 12, and a patched file costs 7 % from night 31 on; box2 is dead
in night 20; on box3 night 44 is an outlier. In night 60 something begins, something ends, and
something is told once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any

from eagleops.drift.judging import judge
from eagleops.drift.series import series_of
from eagleops.ledger import Header, Run
from eagleops.ledger.diff import diff
from eagleops.nights.catalogue import KINDS
from eagleops.nights.faults import news
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.nights.rule import Rule, asked
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.trend import Story, TrendReport

HOSTS = ("box1", "box2", "box3")
PROFILES = ("baseline", "eagle3-2step")
SECRET = "hf_never_shown_anywhere"
HOOK = "https://hooks.example.com/services/T0/B0/never-shown-either"
SCHEDULER = "srt/managers/scheduler.py"
BEGIN = datetime(2026, 10, 2, 2, 30, tzinfo=timezone.utc)
LEVELS = {"baseline": 82.2, "eagle3-2step": 60.1}
THROTTLED, DEAD, PATCHED, OUTLIER, LAST = 12, 20, 31, 44, 60


def began(number: int) -> str:
    """When the night of that number began."""
    return (BEGIN + timedelta(days=number - 1)).isoformat().replace("+00:00", "Z")


def run_id(number: int, host: str, profile: str) -> int:
    """The ledger's number of the run of that night."""
    place = HOSTS.index(host) if host in HOSTS else len(HOSTS)
    return number * 10 + place * 2 + PROFILES.index(profile) + 1


@cache
def speed(number: int, host: str, profile: str) -> float:
    """What that profile measured in that night, in tokens a second."""
    noise = random.Random(f"{number} {host} {profile}").gauss(0, 0.004)
    value = LEVELS[profile] * (1 + noise)
    if host == "box1" and number >= PATCHED and profile == "baseline":
        value *= 0.93
    if host == "box1" and number == THROTTLED:
        value *= 0.72
    if host == "box3" and number == OUTLIER and profile == "baseline":
        value *= 0.89
    return value


@cache
def run(number: int, host: str, profile: str) -> Run:
    """What the ledger would hold of that profile in that night."""
    patched = host == "box1" and number >= PATCHED
    change = {"path": SCHEDULER, "state": "modified", "sha256": "5e1f" * 16, "bytes": 91442}
    engine = {"name": "sglang", "checked": 1840, "modified": [change] if patched else []}
    throttled = host == "box1" and number == THROTTLED
    gpu = {"index": 3, "throttled": {"sw_thermal_slowdown": 0.71} if throttled else {}}
    parts: dict[str, Any] = {
        "packages": {
            "distributions": [{"name": "sglang", "version": "0.5.2"}],
            "compared": [engine],
        },
        "telemetry": {"gpus": [gpu]},
        "launch": {"ready_s": 181.0},
        "bench": {
            "tok_s": {"median": speed(number, host, profile)},
            "accept_length": 1.84 if profile != "baseline" else None,
            "conditions": {"prompt": "prose", "tokens": 256},
            "runs": 5,
            "throttled_runs": 5 if throttled else 0,
        },
    }
    header = Header(
        host=host,
        server=f"nightly-{profile}",
        profile=profile,
        engine="sglang",
        created_utc=began(number),
        id=run_id(number, host, profile),
    )
    return Run.begin(header, parts)


def trend(
    until: int, host: str, profile: str, metric: str = "tok_s", *, since: int = 1
) -> TrendReport:
    """That profile's figure up to that night."""
    numbers = [n for n in range(since, until + 1) if not (host == "box2" and n == DEAD)]
    runs = {run_id(n, host, profile): run(n, host, profile) for n in numbers}
    series = series_of(runs.values(), metric)
    drift = judge(series)
    stories = []
    for change in drift.changes:
        told = diff(runs[change.before.run_id or 0], runs[change.latest.run_id or 0])
        stories.append(Story(change, told, told.changes, len(told.changes)))
    return TrendReport(series=series, drift=drift, stories=tuple(stories), ledger="ledger.db")


def _rule(check: str) -> Rule:
    return Rule.of(check.partition(":")[0])


def _of_host(number: int, host: str) -> Iterator[Finding]:
    """What of a host is not about a profile."""
    said: dict[str, tuple[str, str, float | str | None]] = {}
    if host == "box1" and number >= PATCHED:
        told = f"1 file of sglang is not as its wheel has it: {SCHEDULER}"
        said["engine-files"] = ("warn", f"{told}. pip install --force-reinstall sglang", 1)
    if host == "box2" and 52 <= number < LAST:
        told = "8,912 MiB are free in /data/logs. Remove old logs, or move the state folder."
        said["disk"] = ("warn", told, 8912)
    if host == "box2" and number == LAST:
        told = "GPU 5 (0000:c1:00.0): Xid 13, graphics engine exception, of python3 (PID 40112)"
        said["xid"] = ("warn", told, None)
    if host == "box3" and number == LAST:
        told = "python3 (PID 2817, root) holds GPU 0 and belongs to no server. eagleops reset-gpus"
        said["stale"] = ("warn", told, 1)
    for kind in KINDS.values():
        if kind.of != "host" or kind.id == "doctor":
            continue
        state, message, value = said.get(kind.id, ("pass", _well(kind.id), None))
        unit = kind.unit if value is not None else ""
        yield Finding(kind.id, host, state, message, value, unit, kind.limit if unit else None)
        if kind.id == "host-key":
            for name in ("python", "ptrace", "port", "clock"):
                yield Finding(f"doctor:{name}", host, "pass", f"{name}: as it should be")


def _well(kind: str) -> str:
    return f"{kind} is as it should be"


def _of_profile(number: int, host: str, profile: str) -> Iterator[Finding]:
    ran = run_id(number, host, profile)
    value = speed(number, host, profile)
    throttled = host == "box1" and number == THROTTLED
    yield Finding(f"launch:{profile}", host, "pass", "ready after 181 s", 181.0, "s", run_id=ran)
    yield Finding(f"environment:{profile}", host, "pass", "9 workers, 18 variables", run_id=ran)
    hot = "GPU 3 was slowed down (software thermal slowdown) for 71 % of the measurement. Its fan?"
    yield Finding(
        f"throttling:{profile}",
        host,
        "fail" if throttled else "pass",
        hot if throttled else "no GPU was slowed down",
        71.0 if throttled else 0.0,
        "%",
        1,
        ran,
    )
    state, message = "pass", f"decode speed is steady at {LEVELS[profile]:.1f} tok/s"
    if throttled:
        state, message = "skip", "the measurement does not count: a GPU was throttled"
    elif host == "box1" and profile == "baseline" and number >= PATCHED:
        state = "warn" if number < PATCHED + 3 else "fail"
        message = f"{value:.1f} tok/s, -7.0 % against 82.2 tok/s, since 2026-11-01"
    elif host == "box3" and profile == "baseline" and number == OUTLIER:
        state, message = "warn", f"{value:.1f} tok/s is unusual; later runs tell whether it stays"
    yield Finding(f"speed:{profile}", host, state, message, value, "tok/s", run_id=ran)
    if profile != "baseline":
        told = "accept length is steady at 1.840"
        yield Finding(f"accept-length:{profile}", host, "pass", told, 1.84, "", run_id=ran)


def _findings(number: int, hosts: tuple[str, ...]) -> Iterator[Finding]:
    for host in hosts:
        if host == "box2" and number == DEAD:
            told = "no route to host. Is it on? eagleops doctor --host box2"
            yield Finding("reach", host, "fail", told)
            yield from (
                Finding(check, host, "skip", "the host was not reached")
                for check in asked(_rule, PROFILES, ())
                if check not in {"reach", "doctor"}
            )
            continue
        yield from _of_host(number, host)
        for profile in PROFILES:
            yield from _of_profile(number, host, profile)


@cache
def night(number: int, hosts: tuple[str, ...] = HOSTS) -> Night:
    """That night."""
    begin = BEGIN + timedelta(days=number - 1)
    end = begin + timedelta(minutes=41 + number % 4, seconds=17)
    return Night(
        suite="default",
        uuid=f"{number:032x}",
        began_utc=began(number),
        ended_utc=end.isoformat().replace("+00:00", "Z"),
        outcome="done",
        client="desk",
        user="eve",
        eagleops="0.1",
        hosts=hosts,
        asked={host: asked(_rule, PROFILES, ()) for host in hosts},
        findings=tuple(_findings(number, hosts)),
        facts={"box1": {"env": {"HF_TOKEN": SECRET}}},
    )


@cache
def example(number: int = LAST, hosts: tuple[str, ...] = HOSTS, since: int = 1) -> NightReport:
    """The report of that night, after all those before it."""
    tonight = night(number, hosts)
    history = tuple(night(n, hosts) for n in range(since, number))
    trends = [
        trend(number, host, profile, metric, since=since)
        for host in hosts
        for profile, metric in (
            ("baseline", "tok_s"),
            ("eagle3-2step", "tok_s"),
            ("eagle3-2step", "accept_length"),
        )
    ]
    return NightReport(
        night=tonight,
        news=news(history, tonight),
        history=history,
        trends=tuple(trends),
        reports={"html": "reports/default/latest.html"},
        deliveries={"hooks.example.com": {"ok": True, "status": 200, "attempts": 1}},
    )
