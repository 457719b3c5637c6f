"""What the GPUs did while something was measured, and the words for what was off."""

from __future__ import annotations

from typing import Any

import pytest

from eagleops.measuring import findings
from eagleops.measuring.telemetry import Sample, between, samples_of, windows
from eagleops.process import Process
from eagleops.remote.telemetry import FIELDS


def gpu(index: int = 3, **facts: Any) -> dict[str, Any]:
    """A GPU at work."""
    usual = {
        "power_w": 300.0,
        "temperature_c": 60,
        "sm_clock_mhz": 2600,
        "mem_clock_mhz": 14001,
        "utilization_pct": 98,
        "throttle_reasons": [],
        "pcie_gen": 5,
        "pcie_width": 16,
        "used_mib": 90000,
    }
    return {"index": index, **usual, **facts}


def sampled(*rows: dict[str, Any]) -> tuple[Sample, ...]:
    """A sample a tenth of a second."""
    return tuple(Sample(n / 10, 1e9 + n / 10, (row,)) for n, row in enumerate(rows))


def event(kind: str, now_s: float, **facts: Any) -> dict[str, Any]:
    """An event of the operation."""
    return {"event": kind, "now_s": now_s, "utc_s": 1e9 + now_s, **facts}


def test_samples_stand_on_this_client_s_clock() -> None:
    """The machine's clock is 1000 s ahead; the event that came quickest tells how far."""
    row = [gpu()[field] for field in FIELDS]
    heard = [
        (5.3, event("began", 1005.0, fields=list(FIELDS))),
        (5.51, event("samples", 1005.5, samples=[{"t_s": 1005.2, "took_s": 0.0, "gpus": [row]}])),
    ]

    (sample,) = samples_of(heard)

    assert sample.at_s == pytest.approx(5.21)
    assert sample.utc_s == pytest.approx(1e9 + 1005.2)
    assert sample.gpus == (gpu(),)
    assert samples_of([]) == ()


def test_a_window_is_of_its_stretch_of_time() -> None:
    """Samples before a run and after it are not the run's."""
    samples = sampled(*(gpu(temperature_c=t) for t in (40, 50, 60, 70, 80)))

    (window,) = windows(between(samples, 0.1, 0.3))

    assert (window.samples, window.medians["temperature_c"]) == (3, 60)
    assert (window.lows["temperature_c"], window.highs["temperature_c"]) == (50, 70)


def test_what_is_not_told_is_left_out() -> None:
    """A driver that tells no power gives no power, and no zero."""
    (window,) = windows(sampled(gpu(power_w=None), gpu(power_w=None, throttle_reasons=None)))

    assert "power_w" not in window.medians
    assert window.to_dict()["sm_clock_mhz"] == {"median": 2600, "low": 2600, "high": 2600}


def test_a_throttling_gpu_in_words() -> None:
    """The GPU, the reason as people say it, and for how much of which run."""
    slow = [gpu(throttle_reasons=["sw_thermal_slowdown"])] * 31
    idle = [gpu(throttle_reasons=["gpu_idle"])] * 69

    words = findings.throttling(4, windows(sampled(*slow, *idle)))

    assert words == ("GPU 3 throttled (SW thermal slowdown) for 31 % of run 4",)


def test_idle_and_set_clocks_are_no_throttling() -> None:
    """An idle clock, or one that somebody set on purpose, slows nothing down."""
    rows = sampled(gpu(throttle_reasons=["gpu_idle", "applications_clocks_setting"]))

    assert findings.throttling(1, windows(rows)) == ()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("sw_power_cap", "SW power cap"),
        ("hw_thermal_slowdown", "HW thermal slowdown"),
        ("hw_power_brake_slowdown", "HW power brake slowdown"),
        ("sync_boost", "sync boost"),
        ("0x200", "0x200"),
    ],
)
def test_reasons_as_people_say_them(reason: str, words: str) -> None:
    """Names of query fields become words."""
    assert findings.reason_words(reason) == words


def test_a_pcie_link_that_is_less_than_it_could_be() -> None:
    """A width below the slot's, and a generation that stays low at work."""
    gpus = windows(sampled(gpu(pcie_width=8, pcie_gen=4), gpu(pcie_width=8, pcie_gen=1)))
    most = {3: {"max_pcie_gen": 5, "max_pcie_width": 16}}

    assert list(findings.links(2, gpus, most)) == [
        "GPU 3: PCIe x8 of x16 in run 2",
        "GPU 3: PCIe generation 4 of 5 in run 2",
    ]
    assert list(findings.links(2, gpus, {})) == []


def test_a_link_that_wakes_up_is_sound() -> None:
    """An idle link drops to generation 1 and comes back under load."""
    gpus = windows(sampled(gpu(pcie_gen=1), gpu(pcie_gen=5)))

    assert list(findings.links(1, gpus, {3: {"max_pcie_gen": 5, "max_pcie_width": 16}})) == []


def test_clocks_that_change() -> None:
    """Within a run, and from one run to the others."""
    steady = windows(sampled(gpu(), gpu()))
    falling = windows(sampled(gpu(sm_clock_mhz=2600), gpu(sm_clock_mhz=2000)))
    usual = findings.usual_clocks([steady, steady, falling])

    assert usual == {3: 2600}
    assert list(findings.clocks(1, steady, usual)) == []
    assert list(findings.clocks(3, falling, usual)) == [
        "GPU 3: SM clock 2300 MHz in run 3, 2600 MHz over all runs",
        "GPU 3: SM clock between 2000 and 2600 MHz in run 3",
    ]


def holder(pid: int, server: str | None, gpus: tuple[int, ...]) -> Process:
    """A process that holds GPUs."""
    facts = {"pid": pid, "ppid": 1, "start_ticks": 1, "title": f"python job{pid}", "user": "ann"}
    more = {"gpu_devices": list(gpus), "gpu_mib": {"GPU-1": 2000}, "server": server}
    return Process.from_dict({**facts, "state": "S", "uid": 1000, "comm": "python", **more})


def test_memory_that_others_hold() -> None:
    """Who shares the server's GPUs, with what; others' GPUs are nobody's business."""
    processes = [holder(1, "base", (0, 1)), holder(2, None, (1, 2)), holder(3, None, (2,))]
    gpus = findings.gpus_of(processes, "base")

    assert gpus == {0, 1}
    assert findings.others(processes, "base", gpus) == (
        "GPU 1 is shared with PID 2 (python job2, ann), which holds 2,000 MiB",
    )
