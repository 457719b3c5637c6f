"""What eagleops measures on the box, held against what truly happened there."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from eagleops.session import Session
from eagleops.sim.box import SimBox
from sim.simulated import SimServer

IDLE_MIB = {str(index): 100 for index in range(8)}


@pytest.mark.alone
def test_the_drain_is_noticed_within_100_ms(box: SimBox, launch: Callable[..., SimServer]) -> None:
    """From the moment when the last GPU was truly free, as the box alone knows it."""
    launch("--tp-size", "8", sim={"orphans": True})
    session = Session.open(box.transport(), options=box.options)
    holders = session.call("snapshot")["processes"]
    targets = [{"pid": one["pid"], "start_ticks": one["start_ticks"]} for one in holders]

    session.call("kill", targets=targets, grace_s=0.2)
    began_s = time.monotonic()
    drained = session.call("drain", idle_mib=IDLE_MIB, timeout_s=10)

    released_s = max(release.released_s for release in box.releases())
    assert len(holders) == 8
    assert drained["drained"] is True
    assert 0 <= began_s + drained["drain_s"] - released_s < 0.1
    session.close()


def test_stuck_memory_is_not_called_drained(box: SimBox, launch: Callable[..., SimServer]) -> None:
    """A GPU that lets go after a minute: within one second the answer is no."""
    box.break_gpu(1, stuck_s=60)
    server = launch("--tp-size", "2")
    server.process.kill()
    server.wait_ended()
    session = Session.open(box.transport(), options=box.options)

    drained = session.call("drain", idle_mib=IDLE_MIB, timeout_s=1)

    assert drained["drained"] is False
    assert [gpu["index"] for gpu in drained["gpus"] if gpu["used_mib"] > 100] == [1]
    session.close()
