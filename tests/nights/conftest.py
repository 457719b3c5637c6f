"""Nights as a suite's run would make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore

FIRST = datetime(2026, 10, 1, 2, 30, tzinfo=timezone.utc)
MakeNight = Callable[..., Night]


def utc(day: float) -> str:
    """When the night of that day, counted from 0, began."""
    return (FIRST + timedelta(days=day)).isoformat().replace("+00:00", "Z")


def make_night(day: float, states: Mapping[tuple[str, str], str], **more: Any) -> Night:
    """A finished night: of each host and check its state."""
    findings = tuple(
        Finding(check, host, state, f"{check} on day {day:g}: {state}")
        for (host, check), state in states.items()
    )
    told: dict[str, Any] = {
        "suite": "default",
        "uuid": f"{int(day * 1000):08x}cafe",
        "began_utc": utc(day),
        "ended_utc": utc(day + 0.1),
        "outcome": "done",
        "hosts": tuple(dict.fromkeys(host for host, _ in states)),
        "findings": findings,
    }
    return Night(**{**told, **more})


@pytest.fixture(name="make_night")
def make_night_fixture() -> MakeNight:
    """:func:`make_night`, for tests that are no part of this folder's package."""
    return make_night


@pytest.fixture
def series() -> Callable[..., list[Night]]:
    """``series("disk", "pass", "fail", None)``: a night a state, None for one not looked at."""

    def make(check: str, *states: str | None, **more: Any) -> list[Night]:
        return [
            make_night(day, {} if state is None else {("llm", check): state}, **more)
            for day, state in enumerate(states)
        ]

    return make


@pytest.fixture
def store(tmp_path: Path) -> NightStore:
    """A store where there is nothing yet."""
    return NightStore.beside(tmp_path / "data" / "ledger.db")
