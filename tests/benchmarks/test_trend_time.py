"""A history of years is judged at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from eagleops.drift.judging import judge
from eagleops.drift.series import Point, Series
from eagleops.ledger import Header, Ledger, Run
from eagleops.workflows.trend import LIMIT, trend
from parts.histories import History

pytestmark = pytest.mark.alone

NIGHTS = 400
HISTORY = History(nights=NIGHTS, steps=((150, -7), (260, 7.5), (340, -4)), odd=((300, -15),))
BEGAN = datetime(2026, 1, 1, 2, 30, tzinfo=timezone.utc)
ROUNDS = 5
# Of CPU time; it takes a tenth of that on an idle machine.
JUDGED_LIMIT_S = 0.1
# With its runs read from the ledger, and the stories of its changes.
TREND_LIMIT_S = 1.0
# Four times the nights may take no more than the square of it, and some.
MOST_TIMES = 40


def at(night: int) -> str:
    """When a night began."""
    return (BEGAN + timedelta(days=night)).isoformat().replace("+00:00", "Z")


def best_s(work: Callable[[], object]) -> float:
    """The CPU time of the quickest of several rounds."""
    taken = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def series_of(nights: int) -> Series:
    """So many nights of the history."""
    points = tuple(Point(at(night), value, night) for night, value in HISTORY.make(1)[:nights])
    return Series("box", "p", "tok_s", "tok/s", points)


def test_four_hundred_nights_are_judged_at_once(record_property: Any) -> None:
    """And four times as many nights take not many times as long."""
    long, short = series_of(NIGHTS), series_of(NIGHTS // 4)
    assert len(judge(long).changes) == 3

    long_s, short_s = best_s(lambda: judge(long)), best_s(lambda: judge(short))
    record_property("judge_400_ms", round(1000 * long_s, 2))
    print(f"400 nights: {1000 * long_s:.2f} ms, 100 nights: {1000 * short_s:.2f} ms")

    assert long_s < JUDGED_LIMIT_S
    assert long_s < MOST_TIMES * max(short_s, 1e-4)


def parts_of(night: int, tok_s: float) -> dict[str, Any]:
    """A night's parts at their real sizes: 350 packages, 8 GPUs, 10 processes, 100 samples."""
    gpus = [{"index": n, "sm_clock_mhz": 2400 + night % 7, "power_w": 400.5} for n in range(8)]
    return {
        "spec": {"argv": ["python3", "-m", "sglang.launch_server"], "env": {}, "cwd": "/"},
        "packages": {
            "python": {"version": "3.12.3"},
            "distributions": [
                {"name": f"package-{n}", "version": f"{n}.{night > 150}"} for n in range(350)
            ],
            "compared": [],
        },
        "environment": {
            "counts": {"ok": 400},
            "processes": [
                {"pid": n + night, "variables": {f"VARIABLE_{v}": {"live": "1"} for v in range(40)}}
                for n in range(10)
            ],
        },
        "telemetry": {
            "gpus": [{"index": n, "throttled": {}} for n in range(8)],
            "samples": [{"utc_s": night + n / 10, "gpus": gpus} for n in range(100)],
        },
        "bench": {"tok_s": {"median": tok_s}, "runs": 5, "throttled_runs": int(night % 20 == 0)},
    }


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many nights on record as a trend looks at."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    with Ledger.open(path) as opened:
        for night, tok_s in HISTORY.make(1)[-LIMIT:]:
            header = Header("box", "baseline", "baseline", "sglang", created_utc=at(night))
            opened.add(Run.begin(header, parts_of(night, tok_s)))
    return path


def test_a_trend_comes_soon(ledger: Path, record_property: Any) -> None:
    """What is long in a run, its telemetry above all, is read where it is needed."""
    report = trend(ledger, "baseline", "box")
    assert len(report.series.points) == LIMIT
    assert [change.worse for change in report.drift.changes] == [True]

    taken_s = best_s(lambda: trend(ledger, "baseline", "box"))
    record_property("trend_120_ms", round(1000 * taken_s))
    print(f"{LIMIT} runs: {1000 * taken_s:.0f} ms")

    assert taken_s < TREND_LIMIT_S
