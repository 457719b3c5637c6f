"""Night by night: a change is told soon, dated well, and nothing else is called one."""

from __future__ import annotations

import itertools
import json
import math

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drift.nights import at, points_of
from eagleops.drift.judging import Drift, judge
from eagleops.drift.metrics import METRICS
from eagleops.drift.series import Point, Series
from parts.histories import HISTORIES, History

SEEDS = range(2000, 2012)
FIGURE = "the figure, noise 1 %"


def judged(nights: list[tuple[int, float]], metric: str = "tok_s", **more) -> Drift:
    """What is made of these nights."""
    return judge(Series("box", "p", metric, "", points_of(nights)), **more)


def night_by_night(history: History, seed: int) -> dict[int, Drift]:
    """What was told after each night."""
    nights = history.make(seed)
    return {nights[upto - 1][0]: judged(nights[:upto]) for upto in range(1, len(nights) + 1)}


def flat(count: int, value: float = 88.8, begin: int = 1) -> list[tuple[int, float]]:
    """Nights that differ by next to nothing: half a percent up and down."""
    return [(begin + n, value * (1 + 0.005 * (-1) ** n)) for n in range(count)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_regression_is_told_by_the_third_night_and_stays_told(seed: int) -> None:
    """7 % from night 31 on: unusual at once, changed at night 33, dated to 31, to the end."""
    told = night_by_night(HISTORIES[FIGURE], seed)

    assert [told[night].state for night in (31, 32)] == ["unusual", "unusual"]
    assert {told[night].state for night in told if night >= 33} == {"changed"}
    assert {told[night].state for night in told if 6 <= night < 31} <= {"steady", "unusual"}
    for night, drift in told.items():
        assert len(drift.changes) == (night >= 33)
    last = told[60]
    assert last.since is not None
    assert last.since.earliest.run_id == last.since.after.run_id == last.since.latest.run_id == 31
    assert last.since.before.run_id == 30
    assert last.since.change_pct == pytest.approx(-7, abs=1.5)


@pytest.mark.parametrize("metric", ["tok_s", "ttft_ms"])
def test_a_level_that_is_worse_is_beyond_the_limit_that_is_told(metric: str) -> None:
    """Its own band is no limit: a figure that fails is not shown as one that keeps it."""
    worse = 0.8 if metric == "tok_s" else 1.25
    before, after = flat(10), flat(6, 88.8 * worse, begin=11)
    steady, changed = judged(before, metric), judged([*before, *after], metric)

    is_worse = METRICS[metric].is_worse
    assert (steady.state, changed.state) == ("steady", "changed")
    assert steady.limit in {steady.low, steady.high}
    assert is_worse(steady.limit, steady.latest.value)
    assert is_worse(changed.latest.value, changed.limit)
    assert changed.limit == pytest.approx(88.8, rel=0.04)
    assert judged([], metric).limit is None


@pytest.mark.parametrize("seed", SEEDS)
def test_an_odd_night_is_unusual_and_no_change(seed: int) -> None:
    """After the change the band follows the new level: night 44 alone is outside of it."""
    told = night_by_night(HISTORIES[FIGURE], seed)
    drift = told[44]

    assert (drift.state, drift.latest_unusual, drift.latest_worse) == ("changed", True, True)
    assert [night for night in told if night > 33 and told[night].latest_unusual] == [44]
    assert told[43].level == pytest.approx(told[46].level, rel=0.01)


@pytest.mark.parametrize("kind", [kind for kind in HISTORIES if kind.startswith("nothing")])
def test_where_nothing_changed_no_change_is_told(kind: str) -> None:
    """Noise, heavy tails, odd nights one by one or side by side: no night calls it a change."""
    for seed in SEEDS:
        told = night_by_night(HISTORIES[kind], seed)
        assert {d.state for d in told.values()} <= {"too_short", "steady", "unusual"}
        assert [d.changes for d in told.values() if d.changes] == []


@pytest.mark.parametrize("kind", [kind for kind, h in HISTORIES.items() if len(h.steps) == 1])
def test_each_kind_of_change_is_found_and_dated(kind: str) -> None:
    """Whatever its size, its direction and the noise: one change, within two nights."""
    history = HISTORIES[kind]
    ((begun, percent),) = history.steps
    for seed in SEEDS:
        drift = night_by_night(history, seed)[60]
        assert [abs((c.after.run_id or 0) - begun) <= 2 for c in drift.changes] == [True]
        assert drift.ok == (percent > 0)


def test_a_level_that_recovers_ends_the_fault() -> None:
    """Both changes stay on record; only the level now is judged."""
    history = HISTORIES["a step that recovers after 10"]
    for seed in SEEDS:
        told = night_by_night(history, seed)
        assert told[40].state == "changed"
        assert told[43].state in {"steady", "unusual"}
        assert [change.worse for change in told[60].changes] == [True, False]
        assert told[60].since is None


def test_an_improvement_is_told_and_is_no_fault() -> None:
    """And what is lost of it later is one."""
    up = [*flat(20), *flat(20, 95.0, 21)]
    down = [*up, *flat(10, 88.8, 41)]

    assert judged(up).ok
    assert judged(up).words == (
        "Decode speed stands at 95.0 tok/s; it got better on 2026-10-21 (+7.0 %)."
    )
    assert judged(down).state == "changed"
    assert judged(down).change_pct == pytest.approx(-6.5, abs=0.2)


@pytest.mark.parametrize("metric", METRICS)
def test_which_way_is_worse_depends_on_the_metric(metric: str) -> None:
    """A longer cycle is worse, a higher speed better."""
    rising = judged([*flat(20), *flat(20, 100.0, 21)], metric)

    assert rising.ok == (METRICS[metric].better == "higher")
    assert [change.worse for change in rising.changes] == [METRICS[metric].better == "lower"]


def test_a_change_that_creeps_in_small_steps_is_told_with_its_span() -> None:
    """Two steps of 2 % are 4 %: dated from the first to the second."""
    drift = judged([*flat(20), *flat(20, 87.0, 21), *flat(20, 85.3, 41)])

    assert drift.state == "changed"
    (change,) = drift.changes
    assert change.earliest.run_id in {20, 21}
    assert change.latest.run_id in {41, 42}
    assert "it changed between 2026-10-2" in drift.words


def test_a_change_smaller_than_what_counts_is_none() -> None:
    """2 % are nobody's fault, unless somebody says that they count."""
    nights = [*flat(20), *flat(20, 87.0, 21)]

    assert judged(nights).state == "steady"
    assert judged(nights).changes == ()
    assert judged(nights, smallest_pct=1.5).state == "changed"


def test_a_change_about_the_smallest_size_is_not_told_and_taken_back_night_by_night() -> None:
    """Once told it stays until it has come back by a third, also where the figure creeps."""
    turns = []
    for history in (HISTORIES["a step of 4 %"], History(nights=120, slope=-0.05, noise=0.5)):
        for seed in SEEDS:
            states = [drift.ok for drift in night_by_night(history, seed).values()]
            turns.append(sum(one != other for one, other in itertools.pairwise(states)))

    assert set(turns) == {1}


def test_a_creeping_figure_is_told_with_an_early_earliest_date() -> None:
    """0.05 % a night are 3 % after 60: what is told then says that it crept."""
    last = night_by_night(History(nights=120, slope=-0.05, noise=0.5), 2000)[120]

    assert last.since is not None
    assert (last.since.latest.at - last.since.earliest.at).days > 20


def test_a_level_can_be_accepted() -> None:
    """What is worse than an accepted level is a fault, what was before it is history."""
    nights = [*flat(20), *flat(20, 82.0, 21)]
    worse = [*nights, *flat(10, 76.0, 41)]
    (point,) = points_of([(30, 1.0)])

    assert judged(nights).state == "changed"
    assert judged(nights, accepted_since=point.at).state == "steady"
    assert judged(worse, accepted_since=point.at).change_pct == pytest.approx(-7.3, abs=0.2)


def test_too_few_runs_say_nothing() -> None:
    """Below six nothing is judged; the words say how many count."""
    for count in range(6):
        drift = judged(flat(count))
        assert drift.state == "too_short"
        assert drift.ok
        assert (drift.level, drift.low, drift.high) == (None, None, None)
        assert "too few to tell a change from chance" in drift.words
    assert judged(flat(1)).words.startswith("Decode speed: one run counts")
    assert judged(flat(6)).state == "steady"


def test_equal_figures_are_steady() -> None:
    """No spread is no reason to divide by it; the band is what counts as a change."""
    drift = judged([(night, 88.8) for night in range(1, 30)])

    assert drift.state == "steady"
    assert drift.low == pytest.approx(88.8 / 1.03)
    assert drift.high == pytest.approx(88.8 * 1.03)
    assert judged([*((n, 88.8) for n in range(1, 9)), (9, 80.0)]).state == "unusual"


def test_what_is_left_out_is_neither_level_nor_change() -> None:
    """Three throttled nights in a row are no change; such a latest run is not judged."""
    points = list(points_of([*flat(20), *flat(3, 60.0, 21), *flat(5, 88.8, 24)]))
    for index in (20, 21, 22):
        points[index] = attrs.evolve(points[index], excluded="throttled")
    series = Series("box", "p", "tok_s", "tok/s", tuple(points))

    assert judge(series).state == "steady"
    assert judge(series).counted == 25
    cut = attrs.evolve(series, points=tuple(points[:22]))
    assert judge(cut).state == "steady"
    assert not judge(cut).latest_unusual
    assert judge(cut).words.endswith("The latest run does not count: throttled.")


def test_the_date_is_as_uncertain_as_the_figures_leave_it() -> None:
    """A night between the levels may belong to either: both are told, and no more."""
    drift = judged([*flat(20), (21, 85.7), *flat(20, 82.6, 22)])

    (change,) = drift.changes
    assert (change.earliest.run_id, change.latest.run_id) == (21, 22)


figures = st.lists(
    st.floats(min_value=1e-3, max_value=1e6, allow_nan=False), min_size=0, max_size=40
)


@settings(max_examples=60, deadline=None)
@given(values=figures, metric=st.sampled_from(sorted(METRICS)))
def test_whatever_the_figures_the_verdict_is_whole(values: list[float], metric: str) -> None:
    """Every number is finite, the band holds the level, changes are ordered and of the series."""
    points = tuple(Point(at(n), value, n) for n, value in enumerate(values, 1))
    drift = judge(Series("box", "p", metric, "", points))

    assert json.loads(json.dumps(drift.to_dict(), allow_nan=False))["words"]
    assert drift.state == "changed" or drift.since is None
    if drift.level is not None and drift.low is not None and drift.high is not None:
        assert drift.low < drift.high
        assert drift.low > 0
    for change in drift.changes:
        assert change.earliest.at <= change.latest.at
        assert change.before.at < change.after.at
    afters = [change.after.at for change in drift.changes]
    assert afters == sorted(set(afters))
    assert drift.ok or drift.since in drift.changes


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(sorted(HISTORIES)),
    scale=st.sampled_from([1e-3, 0.5, 1000.0]),
)
def test_the_unit_does_not_matter(seed: int, kind: str, scale: float) -> None:
    """Seconds or milliseconds: the same nights are told."""
    nights = HISTORIES[kind].make(seed)
    plain, scaled = judged(nights), judged([(night, scale * value) for night, value in nights])

    assert [c.after.run_id for c in plain.changes] == [c.after.run_id for c in scaled.changes]
    assert plain.state == scaled.state
    assert math.isclose((plain.level or 0) * scale, scaled.level or 0, rel_tol=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_speed_and_time_are_judged_alike(seed: int) -> None:
    """A history and its reciprocal: a speed that falls is a time that rises."""
    nights = HISTORIES[FIGURE].make(seed)
    speed = judged(nights)
    time = judged([(night, 1000 / value) for night, value in nights], "cycle_ms")

    assert (speed.state, [c.after.run_id for c in speed.changes]) == (
        time.state,
        [c.after.run_id for c in time.changes],
    )
