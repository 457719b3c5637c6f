"""Nights as points, and as the runs that a ledger holds of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from eagleops.drift.series import Point
from eagleops.ledger import Header, Run

BEGAN = datetime(2026, 10, 1, 2, 30, tzinfo=timezone.utc)


def at(night: int) -> str:
    """When a night began; they count from 1."""
    return (BEGAN + timedelta(days=night - 1)).isoformat().replace("+00:00", "Z")


def points_of(nights: Sequence[tuple[int, float]]) -> tuple[Point, ...]:
    """Nights and their figures as points; a run's number is its night's."""
    return tuple(Point(at(night), figure, night) for night, figure in nights)


def run_of(night: int, tok_s: float | None = 88.8, *, time: str | None = None, **more: Any) -> Run:
    """A run of a night: launched, verified, measured.

    Args:
        night: Its number, from 1.
        tok_s: Its speed; None for one that was never measured.
        time: When, if not at the night's usual time.
        more: ``bench`` is merged into the usual one; other parts replace theirs.
    """
    bench = {
        "tok_s": {"median": tok_s},
        "ttft_ms": 120.0,
        "accept_length": 2.4,
        "cycle_ms": 27.5,
        "runs": 5,
        "throttled_runs": 0,
        "conditions": {"prompt": "prose", "tokens": 256},
        **more.pop("bench", {}),
    }
    parts: dict[str, Any] = {
        "spec": {"argv": ["/env/bin/python3", "-m", "sglang.launch_server"], "env": {}, "cwd": "/"},
        "launch": {"ready_s": 41.0},
        "environment": {"counts": {"ok": 8, "wrong": 0, "missing": 0, "unknown": 0}},
        **({} if tok_s is None else {"bench": bench}),
        **more,
    }
    header = Header(
        host="box",
        server="baseline",
        profile="baseline",
        engine="sglang",
        created_utc=time or at(night),
    )
    return Run.begin(header, parts)
