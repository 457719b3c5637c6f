"""When a process died: asked of the kernel, long after nobody was looking."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from eagleops.sim import death
from parts.poll import until

# From a machine with a clock of 100 ticks: 0x1763 ticks of TIME_WAIT are left of the first.
TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:22B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0
   1: 0100007F:94F1 0100007F:982C 06 00000000:00000000 03:00001763 00000000     0        0 0 3 0
   2: 0100007F:0050 0100007F:B3EA 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0
"""
HOLDER = (
    "import sys, time; from eagleops.sim import death; "
    "print(*death.leave_word(), flush=True); time.sleep(60)"
)


def test_the_kernels_table_tells_when_a_connection_closed() -> None:
    """59.87 s of a minute are left: it was closed 0.13 s before the table was read."""
    closed = death.closed_since(TABLE, now_s=1000.0)

    assert closed == {frozenset({0x94F1, 0x982C}): pytest.approx(1000.0 - 0.13)}


@pytest.mark.parametrize("wait_s", [0.0, 0.7])
def test_the_time_of_death_is_known_to_the_tick(wait_s: float) -> None:
    """However late the question: within 30 ms of the kill."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        near, far = map(int, holder.stdout.readline().split())
        assert death.died_at((near, far)) is None

        before_s = time.monotonic()
        holder.kill()
        holder.wait()
        after_s = time.monotonic()
    asked_s = after_s + wait_s
    until(lambda: time.monotonic() >= asked_s)

    died_s = death.died_at((near, far))

    assert died_s is not None
    assert before_s - 0.03 <= died_s <= after_s + 0.03


def test_without_word_nothing_is_known() -> None:
    """A process that left no ports died at no known time."""
    assert death.died_at(None) is None
