"""GPU memory after a death: held, falling GPU by GPU, and free at a time that is known."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.sim import drain
from eagleops.sim.box import SimBox
from parts.poll import until
from sim.simulated import SimServer

gpus = st.integers(0, 31)


@given(mib=st.integers(0, 97_000), gpu=gpus, since_s=st.floats(0, 2))
def test_what_is_held_never_grows(mib: int, gpu: int, since_s: float) -> None:
    """Whole for 0.1 s, then at most a remnant, and nothing after 0.34 s."""
    held = drain.held_mib(mib, gpu, since_s)

    assert 0 <= held <= mib
    assert held >= drain.held_mib(mib, gpu, since_s + 0.01)
    if since_s < 0.1:
        assert held == mib
    if since_s >= 0.34:
        assert held == 0


def test_gpus_fall_one_by_one_as_measured() -> None:
    """At 0.2 s some hold everything and some 387 MiB; all are free between 0.32 and 0.34 s."""
    held = [drain.held_mib(21_959, gpu, 0.2) for gpu in range(8)]

    assert set(held) == {387, 21_959}
    assert min(map(drain.released_s, range(8))) == 0.32
    assert max(map(drain.released_s, range(8))) == 0.34


def read(box: SimBox) -> list[int]:
    """Used MiB of each GPU."""
    return [gpu.used_mib for gpu in box.read_gpus()]


@pytest.mark.alone
def test_memory_outlives_its_process_and_then_drains(
    box: SimBox, launch: Callable[..., SimServer]
) -> None:
    """Right after SIGKILL the process is gone from the list and its memory is not."""
    server = launch("--tp-size", "8")
    whole = read(box)[0]

    os.kill(server.pid, signal.SIGKILL)
    until(lambda: len(server.members()) == 0, interval_s=0.001)
    killed_s = time.monotonic()
    first = box.read_gpus()
    seen: list[tuple[float, list[int]]] = []
    until(lambda: seen.append((time.monotonic(), read(box))) or not any(seen[-1][1]))

    assert [gpu.processes for gpu in first] == [()] * 8
    assert any(gpu.used_mib == whole for gpu in first)
    assert any(0 < min(used) < whole == max(used) for _, used in seen)
    assert seen[-1][0] - killed_s < 0.4
    server.process.wait()


def test_the_true_time_of_release_is_known(box: SimBox, launch: Callable[..., SimServer]) -> None:
    """Every holder's, also when nobody has looked in between."""
    server = launch("--tp-size", "2")
    before_s = time.monotonic()
    os.kill(server.pid, signal.SIGKILL)
    server.wait_ended()
    after_s = time.monotonic()
    until(lambda: time.monotonic() > after_s + 0.6)

    releases = box.releases()

    assert [release.gpu for release in sorted(releases, key=lambda one: one.gpu)] == [0, 1]
    for release in releases:
        assert before_s - 0.03 <= release.died_s <= after_s + 0.03
        assert release.released_s - release.died_s == pytest.approx(drain.released_s(release.gpu))
        assert release.mib > 80_000
    assert read(box) == [0] * 8


def test_the_first_to_ask_settles_the_time_for_all(
    box: SimBox, launch: Callable[..., SimServer]
) -> None:
    """Every later answer is the same to the last digit."""
    server = launch()
    os.kill(server.pid, signal.SIGKILL)
    server.wait_ended()

    assert box.releases() == box.releases()


def test_stuck_memory_stays_as_long_as_it_is_told(
    box: SimBox, launch: Callable[..., SimServer]
) -> None:
    """A GPU that lets go some seconds late, the other on time."""
    box.break_gpu(1, stuck_s=4.0)
    server = launch("--tp-size", "2")
    os.kill(server.pid, signal.SIGKILL)
    server.wait_ended()

    until(lambda: read(box)[0] == 0)

    assert read(box)[1] > 80_000
    until(lambda: read(box)[1] == 0)
    late = {release.gpu: release.released_s - release.died_s for release in box.releases()}
    assert late == {
        0: pytest.approx(drain.released_s(0)),
        1: pytest.approx(4 + drain.released_s(1)),
    }


def test_one_dead_worker_frees_its_gpu_alone(box: SimBox, launch: Callable[..., SimServer]) -> None:
    """With workers that outlive their server: kill one, and the other's memory stays."""
    server = launch("--tp-size", "2", sim={"orphans": True})
    os.kill(server.pid, signal.SIGKILL)
    os.kill(server.worker("sglang::scheduler_TP0"), signal.SIGKILL)

    until(lambda: read(box)[0] == 0)

    assert read(box)[1] > 80_000


def test_gpus_warm_while_tokens_are_decoded(box: SimBox, launch: Callable[..., SimServer]) -> None:
    """Power and utilisation jump, temperature follows, and the idle reason goes with the memory."""
    assert box.read_gpus()[0].throttle_mask == 1
    server = launch("--tp-size", "2")
    idle = box.read_gpus()[1]

    events = server.events("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 4000}})
    next(events)
    busy = until(lambda: (g := box.read_gpus()[1]).temperature_c > idle.temperature_c + 2 and g)
    events.close()

    assert (idle.utilization_pct, idle.throttle_mask, idle.pstate) == (0, 0, "P1")
    assert busy.utilization_pct > 90
    assert busy.power_w > 2 * idle.power_w
    assert busy.sm_clock_mhz == idle.sm_clock_mhz > 2000
    until(lambda: box.read_gpus()[1].utilization_pct == 0)
    assert box.read_gpus()[5].power_w < 30
