"""What verifying costs: one exec, little more for many workers, and no pause in any of them."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.remote.mask import Mask
from eagleops.remote.process_environ import Witnesses
from eagleops.session import Session
from eagleops.transport.base import Argv, Channel, Completed, Transport
from eagleops.workflows.verify import verify
from environment.programs import python_worker, running

ASKED = {f"NCCL_{name}": "1" for name in ("AA", "BB", "CC", "DD", "EE", "FF")}
WINDOW_MS = 200
WINDOWS = 24


@attrs.define
class Counting:
    """A transport that counts what is started through it."""

    transport: Transport
    started: int = 0

    @property
    def where(self) -> str:
        """As the transport's."""
        return self.transport.where

    def open(self, argv: Argv, *, timeout_s: float | None = None) -> Channel:
        """Counts, and starts."""
        self.started += 1
        return self.transport.open(argv, timeout_s=timeout_s)

    def run(self, argv: Argv, *, stdin: bytes = b"", timeout_s: float | None = None) -> Completed:
        """Counts, and runs."""
        self.started += 1
        return self.transport.run(argv, stdin=stdin, timeout_s=timeout_s)

    def close(self) -> None:
        """Closes the transport."""
        self.transport.close()


@attrs.define
class Once:
    """A machine that is entered for each call anew."""

    transport: Transport
    name: str = "box"

    def call(self, op: str, **settings: Any) -> dict[str, Any]:
        """Opens a session, runs one operation and closes it."""
        session = Session.open(self.transport, python=sys.executable)
        try:
            return session.call(op, **settings)
        finally:
            session.close()


def best_of(count: int, act: Callable[[], object]) -> float:
    """Seconds of the quickest of some tries."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        act()
        times.append(time.perf_counter() - started)
    return min(times)


@pytest.mark.alone
def test_sixty_four_workers_cost_one_exec_and_little_more_than_one(sshd, library) -> None:
    """Over SSH, from nothing to the verdict: at most three times as long as one worker's."""
    transport = Counting(sshd.transport())
    times = {}
    for workers in (1, 64):
        plan = {
            "start": "fork",
            "count": workers,
            "steps": [["overwrite", "z", "sglang::scheduler_TP0"]],
            "names": [],
            "library": library,
        }
        with python_worker(Path(sys.executable), plan, {**os.environ, **ASKED}) as (main, *_):
            report = verify(Once(transport), pid=main.pid, expected=ASKED)
            assert (len(report.counted), report.ok) == (workers, True)
            transport.started = 0
            verify(Once(transport), pid=main.pid, expected=ASKED)
            assert transport.started == 1
            times[workers] = best_of(
                5, lambda pid=main.pid: verify(Once(transport), pid=pid, expected=ASKED)
            )
    transport.close()

    print(f"\n1 worker {times[1] * 1000:.0f} ms, 64 workers {times[64] * 1000:.0f} ms")
    assert times[64] <= 3 * times[1]


def longest_gaps(spin: Path, meanwhile: Callable[[int], object]) -> tuple[list[int], int]:
    """The longest gap of each window in ns, and how often the spinner gave the processor up.

    ``meanwhile`` is called again and again in every other window, on another processor.
    """
    with running([spin, str(WINDOW_MS), str(WINDOWS)], {}) as process:
        assert process.stdout.readline() == b"ready\n"
        own, *others = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process.pid, {own})
        os.sched_setaffinity(0, others or {own})
        switches = _voluntary_switches(process.pid)
        gaps = []
        for window in range(WINDOWS):
            until_s = time.monotonic() + WINDOW_MS / 1000 * 0.9
            while window % 2 and time.monotonic() < until_s:
                meanwhile(process.pid)
            gaps.append(int(process.stdout.readline()))
            if window == WINDOWS - 2:
                switches = _voluntary_switches(process.pid) - switches
        os.sched_setaffinity(0, {own, *others})
        return gaps, switches


def _voluntary_switches(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("voluntary")))


@pytest.mark.alone
def test_a_worker_that_spins_is_not_paused(build) -> None:
    """Read a thousand times, a spinner's longest gap stays what it is when left alone.

    A stop, a signal or a lock that it waits for would show as a wait: a spinner has none.
    """
    reads = 0
    witnesses = Witnesses(Mask(ASKED))

    def reading(pid: int) -> None:
        nonlocal reads
        assert witnesses.read(pid)["live"]["state"] == "read"
        reads += 1

    gaps, waits = longest_gaps(build("spin.c"), reading)

    alone = statistics.median(gaps[0::2])
    while_read = statistics.median(gaps[1::2])
    print(
        f"\n{reads} readings: longest gap in {WINDOW_MS} ms, median of {WINDOWS // 2} windows: "
        f"{alone / 1e6:.3f} ms alone, {while_read / 1e6:.3f} ms while read; waits: {waits}"
    )
    assert reads >= 1000
    assert waits == 0
    # Two of the scheduler's slices: other programs of a busy machine are allowed that much.
    assert while_read <= alone + 8_000_000
