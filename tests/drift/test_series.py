"""Which points count: what throttled, ran with a wrong environment or was asked otherwise."""

from __future__ import annotations

import attrs
import pytest

from drift.nights import run_of
from eagleops.drift.series import series_of
from eagleops.errors import UsageError
from eagleops.ledger import Run


def throttled(share: float, reason: str = "hw_thermal_slowdown") -> dict:
    """Telemetry of a run in which GPU 3 was slowed down."""
    gpus = [{"index": index, "throttled": {}} for index in range(8)]
    gpus[3]["throttled"] = {reason: share}
    return {"telemetry": {"gpus": gpus}, "bench": {"throttled_runs": 4}}


def excluded(runs: list[Run], metric: str = "tok_s") -> list[str]:
    """Why each of the runs is left out."""
    return [point.excluded for point in series_of(runs, metric).points]


def test_points_come_in_the_order_of_their_time() -> None:
    """Runs are sorted by when they began, whatever order they are given in."""
    series = series_of([run_of(3, 3.0), run_of(1, 1.0), run_of(2, 2.0)])

    assert [point.value for point in series.points] == [1.0, 2.0, 3.0]
    assert (series.host, series.profile, series.unit) == ("box", "baseline", "tok/s")


def test_two_runs_of_one_night_are_two_points() -> None:
    """Each measurement is a point; of two at one moment the later recorded is the later."""
    first = run_of(1, 1.0, time="2026-10-01T02:30:00Z")
    second = run_of(1, 2.0, time="2026-10-01T02:30:00.5Z")

    assert [point.value for point in series_of([second, first]).points] == [1.0, 2.0]


def test_a_run_without_the_figure_is_no_point() -> None:
    """What died before it was measured, or measured nothing, is left away; NaN is nothing."""
    runs = [
        run_of(1, None),
        run_of(2, float("nan")),
        run_of(3, 0.0),
        run_of(4, float("inf")),
        run_of(5, bench={"accept_length": None}),
    ]

    assert [point.value for point in series_of(runs).points] == [88.8]
    assert series_of(runs, "accept_length").points[0].value == pytest.approx(2.4)
    assert len(series_of(runs, "accept_length").points) == 3
    assert series_of([]).points == ()


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("tok_s", 88.8),
        ("ttft_ms", 120),
        ("accept_length", 2.4),
        ("cycle_ms", 27.5),
        ("ready_s", 41),
    ],
)
def test_each_metric_is_read_from_where_it_is_recorded(metric: str, value: float) -> None:
    """The bench tells the figures, the launch the time to ready."""
    assert series_of([run_of(1)], metric).points[0].value == pytest.approx(value)


def test_an_unknown_metric_is_a_usage_error() -> None:
    """The error names the metrics that there are."""
    with pytest.raises(UsageError, match="there is no metric 'speed'") as raised:
        series_of([run_of(1)], "speed")

    assert "accept_length" in raised.value.way_out


def test_a_throttled_night_is_left_out_with_the_reason() -> None:
    """The GPU, the reason and the share of the time are told; less than 1 % counts."""
    runs = [run_of(1), run_of(2, 70.0, **throttled(0.4)), run_of(3, **throttled(0.004)), run_of(4)]

    assert excluded(runs) == [
        "",
        "GPU 3 throttled (HW thermal slowdown) for 40 % of the measurement",
        "",
        "",
    ]


def test_without_telemetry_the_bench_s_own_count_tells() -> None:
    """A ledger that lost its samples still knows in how many runs a GPU was slowed down."""
    runs = [run_of(1), run_of(2, bench={"throttled_runs": 2}), run_of(3)]

    assert excluded(runs) == ["", "throttled for 40 % of the measurement", ""]


def test_heat_does_not_exclude_an_accept_length() -> None:
    """How many tokens are accepted does not depend on clocks, nor does the time to ready."""
    runs = [run_of(1), run_of(2, **throttled(0.9)), run_of(3)]

    assert excluded(runs, "accept_length") == ["", "", ""]
    assert excluded(runs, "ready_s") == ["", "", ""]


def test_a_limit_that_always_holds_excludes_nothing() -> None:
    """A power cap in most runs is how the box is; another reason is still none of it."""
    capped = [run_of(night, **throttled(0.9, "sw_power_cap")) for night in range(1, 10)]
    hot = run_of(10, **throttled(0.5))

    assert excluded([*capped, hot]) == [""] * 9 + [
        "GPU 3 throttled (HW thermal slowdown) for 50 % of the measurement"
    ]


def test_a_wrong_environment_is_left_out_and_a_blind_witness_is_not() -> None:
    """What was proved wrong says nothing of the profile; what is unknown may be right."""
    runs = [
        run_of(1, environment={"counts": {"wrong": 8, "missing": 1}}),
        run_of(2, environment={"counts": {"ok": 3}, "missing_workers": [{"role": "scheduler"}]}),
        run_of(3, environment={"counts": {"unknown": 9}}),
        run_of(4, environment=None),
    ]

    assert excluded(runs) == [
        "environment: 8 wrong, 1 missing",
        "environment: 1 workers not there",
        "",
        "",
    ]


def test_what_was_measured_otherwise_than_the_latest_is_left_out() -> None:
    """Other tokens or another prompt are another measurement, but not of the time to ready."""
    runs = [
        run_of(1, bench={"conditions": {"prompt": "code", "tokens": 64}}),
        run_of(2, bench={"conditions": {}}),
        run_of(3),
    ]

    assert excluded(runs) == [
        "measured otherwise: prompt code, not prose, tokens 64, not 256",
        "",
        "",
    ]
    assert excluded(runs, "ready_s") == ["", "", ""]


@pytest.mark.parametrize("part", ["bench", "telemetry", "environment", "launch"])
@pytest.mark.parametrize("body", [None, [], "text", 3, {}, {"gpus": None}, {"conditions": 7}])
def test_a_part_of_another_shape_breaks_nothing(part: str, body: object) -> None:
    """A ledger may hold what another version wrote."""
    odd = run_of(1)
    odd = attrs.evolve(odd, facts=(*odd.facts, *Run.begin(odd.header, {part: body}).facts))

    for metric in ("tok_s", "accept_length", "ready_s"):
        series = series_of([odd, run_of(2)], metric)
        assert series.latest is not None
        assert series.latest.value > 0
