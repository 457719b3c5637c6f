"""The plot of a figure's history: what is written in it does not overlap."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone

import attrs
import pytest

from eagleops.drift.judging import judge
from eagleops.drift.series import Point, Series
from eagleops.render.nightly import plots
from eagleops.render.page import drawing
from eagleops.workflows.trend import TrendReport
from nightly_reports.examples import began, trend


def steps(*levels: float, nights: int = 14) -> TrendReport:
    """A figure that stood at each of these levels for so many nights."""
    values = [level * (1 + 0.001 * (n % 3)) for level in levels for n in range(nights)]
    points = [Point(began(n), value, n) for n, value in enumerate(values, 1)]
    series = Series("box1", "baseline", "tok_s", "tok/s", tuple(points))
    return TrendReport(series=series, drift=judge(series))


@pytest.mark.parametrize(
    "shown",
    [
        trend(60, "box1", "baseline"),
        trend(34, "box1", "baseline"),
        trend(60, "box3", "eagle3-2step", "accept_length"),
        steps(82, 76, 88, 70),
        steps(82, 88, nights=4),
    ],
    ids=["sixty nights", "confirmed", "flat", "three changes", "few nights"],
)
def test_words_do_not_overlap(shown: TrendReport, monkeypatch) -> None:
    """Neither the changes' labels each other, nor any of them the axes' ones or the plot's edge."""
    kept = []
    monkeypatch.setattr(plots, "svg", lambda drawn, *_: kept.append(drawn) or "plot")

    plots.trend_plot(shown, "trend")

    (drawn,) = kept
    drawn.draw_without_rendering()
    axes = drawn.axes[0]
    texts = [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]
    boxes = [t.get_window_extent() for t in texts if t.get_text()]
    overlaps = [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]
    assert len(axes.texts) == len(shown.drift.changes)
    assert overlaps == []
    width = drawn.bbox.width
    assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)


def test_a_history_without_a_point_has_no_plot() -> None:
    """There is nothing to draw, and nothing breaks."""
    empty = Series("box1", "baseline", "tok_s", "tok/s")

    assert plots.trend_plot(TrendReport(series=empty, drift=judge(empty)), "trend") is None


def test_what_was_left_out_is_another_mark() -> None:
    """A cross in the colour of warnings; it does not move the level or the band."""
    with_hot = plots.trend_plot(trend(30, "box1", "baseline"), "trend")

    assert with_hot is not None
    assert f"var({drawing._VARIABLES[drawing.WARNING]})" in with_hot.svg
    assert "left out on 2026-10-13: GPU 3 throttled" in with_hot.description


def test_a_figure_with_one_point_is_drawn() -> None:
    """The first night has no level and no band."""
    series = Series("box1", "baseline", "tok_s", "tok/s", (Point(began(1), 82.2, 1),))
    one = TrendReport(series=series, drift=judge(series))

    assert plots.trend_plot(attrs.evolve(one), "trend") is not None


@pytest.mark.parametrize("minutes", [0, 2.6, 47, 160, 20 * 60, 65 * 60, 80 * 1440, 1000 * 1440])
def test_a_history_of_any_length_has_its_times_below_it(minutes: float, monkeypatch) -> None:
    """Matplotlib has no complaint (here it would be an error) that a timer's journal would show."""
    kept = []
    monkeypatch.setattr(plots, "svg", lambda drawn, *_: kept.append(drawn) or "plot")
    first = datetime(2026, 11, 27, 4, 31, tzinfo=timezone.utc)
    at = [first + timedelta(minutes=minutes * n / 3) for n in range(4 if minutes else 1)]
    points = [Point(when.isoformat(), 82.0 + n, n) for n, when in enumerate(at, 1)]
    series = Series("box1", "baseline", "tok_s", "tok/s", tuple(points))

    plots.trend_plot(TrendReport(series=series, drift=judge(series)), "trend")

    (drawn,) = kept
    drawn.draw_without_rendering()
    left, right = drawn.axes[0].get_xlim()
    assert 1 <= sum(left <= tick <= right for tick in drawn.axes[0].get_xticks()) <= 7
    assert right - left <= max(4.0, 1.2 * minutes / 1440)  # in days: one night stands in its week
