"""The plots of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.comparison.break_even import BreakEven
from eagleops.comparison.trial import Restarts
from eagleops.render.page.drawing import (
    GRID,
    INK,
    MARKS,
    MUTED,
    WARNING,
    Plot,
    colour,
    figure,
    svg,
)
from eagleops.render.report.time_lines import TimeLine, time_lines
from eagleops.workflows.compare_result import CompareResult, HeatMap

# Inches: on a phone, letters of 10 points are then still read.
WIDTH = 5.0
ROW = 0.55
# A longer name stands above its row, so that it takes no width from the plot.
LONG_NAME = 16
Recorded = Mapping[tuple[str, int], Mapping[str, Any]]


@attrs.frozen
class Plots:
    """All of them; None where there is nothing to draw."""

    speed: Plot
    change: Plot | None
    accept_lengths: Plot | None
    break_even: tuple[Plot, ...]
    time_lines: tuple[TimeLine, ...]
    heat_map: Plot | None = None


def plots_of(result: CompareResult, recorded: Recorded) -> Plots:
    """The plots of a result."""
    return Plots(
        speed(result.restarts),
        change(result),
        accept_lengths(result, recorded),
        tuple(break_even(told, name, _number_of(result, name)) for name, told in result.break_even),
        time_lines(result, recorded),
        None if result.heat_map is None else heat_map(result.heat_map),
    )


def speed(restarts: Sequence[Restarts]) -> Plot:
    """Every restart as a mark, every request as a faint dot, the means as lines."""
    with figure(WIDTH, 1.0 + _row_height([one.profile for one in restarts])) as drawn:
        axes = drawn.subplots()
        for row, one in enumerate(restarts):
            for trial in one.trials:
                axes.plot(
                    trial.requests,
                    [row - 0.22] * len(trial.requests),
                    linestyle="none",
                    marker=".",
                    markersize=4,
                    color=colour(row),
                    alpha=0.45,
                )
            left_out = [t.tok_s for t in one.trials if not t.counts and t.tok_s]
            _marks(axes, one.figures, row, colour(row), MARKS[row % len(MARKS)])
            _marks(axes, left_out, row, WARNING, "x")
            if one.mean_tok_s is not None:
                axes.vlines(one.mean_tok_s, row - 0.34, row + 0.34, color=INK, linewidth=1.6)
        _name_rows(axes, [one.profile for one in restarts])
        axes.set_ylim(len(restarts) - 0.45, -0.55)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("tok/s, one stream")
        return svg(drawn, "speed", "Speed per profile", _speed_words(restarts))


def _row_height(names: Sequence[str]) -> float:
    return len(names) * ROW * (1.5 if max(map(len, names)) > LONG_NAME else 1)


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    if max(map(len, names)) <= LONG_NAME:
        axes.set_yticks(range(len(names)), names)
        return
    axes.set_yticks([])
    for row, name in enumerate(names):
        axes.text(0.01, row - 0.46, name, transform=axes.get_yaxis_transform(), va="center")


def _marks(axes: Any, values: Sequence[Any], row: int, shade: str, mark: str) -> None:
    # Marks one above the other: equal figures stay to be counted.
    for place, value in enumerate(values):
        offset = 0.16 * (place / max(1, len(values) - 1) - 0.5)
        axes.plot(value, row + offset, linestyle="none", marker=mark, markersize=7, color=shade)


def _speed_words(restarts: Sequence[Restarts]) -> str:
    told = []
    for one in restarts:
        if one.mean_tok_s is None:
            told.append(f"{one.profile}: no restart counts")
            continue
        figures = ", ".join(f"{value:.1f}" for value in one.figures)
        told.append(f"{one.profile}: mean {one.mean_tok_s:.1f} tok/s of restarts {figures}")
    return ". ".join(told) + "."


def change(result: CompareResult) -> Plot | None:
    """Each profile's change against the baseline with its interval, and what does not matter."""
    found = [(v, v.difference) for v in result.verdicts if v.difference is not None]
    if not found:
        return None
    smallest = result.plan.protocol.smallest_pct
    with figure(WIDTH, 1.1 + _row_height([v.profile for v, _ in found])) as drawn:
        axes = drawn.subplots()
        axes.axvspan(-smallest, smallest, color=GRID, linewidth=0)
        axes.axvline(0, color=MUTED, linewidth=1)
        words = []
        # Above the mark, or under it where the row's name stands above.
        long = max(len(verdict.profile) for verdict, _ in found) > LONG_NAME
        below = -19 if long else 11
        for row, (verdict, told) in enumerate(found):
            shade = colour(_number_of(result, verdict.profile))
            if told.low_pct is not None and told.high_pct is not None:
                axes.hlines(row, told.low_pct, told.high_pct, color=shade, linewidth=3)
                axes.vlines([told.low_pct, told.high_pct], row - 0.1, row + 0.1, color=shade)
            axes.plot(
                told.change_pct,
                row,
                marker=MARKS[(row + 1) % len(MARKS)],
                markersize=9,
                color=shade,
            )
            conclusion = verdict.conclusion.replace("_", " ")
            axes.annotate(
                f"{told.change_pct:+.1f} %, {conclusion}",
                (told.change_pct, row),
                xytext=(0, below),
                textcoords="offset points",
                ha="center",
            )
            words.append(verdict.words)
        axes.margins(x=0.25)
        _name_rows(axes, [verdict.profile for verdict, _ in found])
        axes.set_ylim(len(found) - 0.5, -0.75)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel(f"change against {result.restarts[0].profile}, %")
        title = f"Change against {result.restarts[0].profile}"
        return svg(drawn, "change", title, " ".join(words))


def break_even(told: BreakEven, profile: str, number: int) -> Plot:
    """The speed at each accept length, where it pays, and the measured point."""
    curve = told.curve
    last = curve[-1][0]
    with figure(WIDTH, 3.3) as drawn:
        axes = drawn.subplots()
        shade = colour(number)
        axes.plot(*zip(*curve, strict=True), color=shade, linewidth=2, marker="o", markersize=4)
        axes.axhline(told.baseline_tok_s, color=MUTED, linewidth=1.2, linestyle="--")
        axes.annotate(
            f"baseline {told.baseline_tok_s:.1f} tok/s",
            (1, told.baseline_tok_s),
            xytext=(2, 4),
            textcoords="offset points",
        )
        needed = told.needed_accept_length
        if needed <= last:
            axes.axvline(needed, color=MUTED, linewidth=1.2, linestyle=":")
            axes.annotate(
                f"needed {needed:.2f}",
                (needed, axes.get_ylim()[0]),
                xytext=(4, 6),
                textcoords="offset points",
            )
        if told.accept_length is not None:
            speed_ = told.speed_at(told.accept_length)
            mark = MARKS[number % len(MARKS)]
            axes.plot(told.accept_length, speed_, marker=mark, markersize=11, color=shade)
            axes.annotate(
                f"measured {told.accept_length:.2f}",
                (told.accept_length, speed_),
                xytext=(10, -12),
                textcoords="offset points",
            )
        axes.set_xticks(range(1, last + 1))
        axes.set_xlabel("accept length, tokens a cycle with the target's own")
        axes.set_ylabel("tok/s")
        return svg(drawn, f"break-even-{number}", f"Break-even of {profile}", told.conclusion)


def accept_lengths(result: CompareResult, recorded: Recorded) -> Plot | None:
    """How often a cycle yielded how many tokens, per profile."""
    found = dict(_cycles(result, recorded))
    if not found:
        return None
    longest = max(len(shares) for shares in found.values())
    with figure(WIDTH, 2.8) as drawn:
        axes = drawn.subplots()
        width = 0.8 / len(found)
        for place, (profile, shares) in enumerate(found.items()):
            offset = width * (place - (len(found) - 1) / 2)
            axes.bar(
                [1 + tokens + offset for tokens in range(len(shares))],
                [100 * share for share in shares],
                width=width * 0.92,
                color=colour(_number_of(result, profile)),
                label=profile,
            )
        axes.set_xticks(range(1, longest + 1))
        axes.grid(axis="x", visible=False)
        axes.set_xlabel("tokens a cycle yielded, the target's own among them")
        axes.set_ylabel("% of cycles")
        axes.legend()
        words = ". ".join(
            f"{profile}: "
            + ", ".join(f"{n} in {100 * share:.0f} %" for n, share in enumerate(shares, 1))
            for profile, shares in found.items()
        )
        return svg(drawn, "accept", "Accept length, cycle by cycle", words + ".")


def heat_map(told: HeatMap) -> Plot:
    """A sweep's speeds: a number in each cell, the faster the deeper its shade."""
    speeds = [speed_ for row in told.tok_s for speed_ in row if speed_ is not None]
    slowest, fastest = min(speeds, default=0.0), max(speeds, default=0.0)
    words = []
    with figure(WIDTH, 1.2 + ROW * len(told.row_values)) as drawn:
        axes = drawn.subplots()
        for row, line in enumerate(told.tok_s):
            for column, speed_ in enumerate(line):
                if speed_ is None:
                    axes.text(column, row, "not measured", ha="center", va="center")
                    continue
                # At most a third of the colour: the ink on it stays readable, light and dark.
                depth = 0.33 * (speed_ - slowest) / (fastest - slowest or 1)
                axes.bar(column, 0.94, 0.94, row - 0.47, color=colour(1), alpha=depth, linewidth=0)
                weight = "bold" if speed_ == fastest else "normal"
                axes.text(column, row, f"{speed_:.1f}", ha="center", va="center", fontweight=weight)
                place = f"{told.rows} {told.row_values[row]}"
                words.append(f"{place}, {told.columns} {told.column_values[column]}: {speed_:.1f}")
        axes.set_xticks(range(len(told.column_values)), told.column_values)
        axes.set_yticks(range(len(told.row_values)), told.row_values)
        axes.set_xlim(-0.5, len(told.column_values) - 0.5)
        axes.set_ylim(len(told.row_values) - 0.5, -0.5)
        axes.grid(visible=False)
        axes.set_xlabel(told.columns)
        axes.set_ylabel(told.rows)
        return svg(drawn, "heat", "tok/s over the grid", "; ".join(words) + ".")


def _cycles(result: CompareResult, recorded: Recorded) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The share of cycles that yielded 1, 2, ... tokens, of each profile whose engine tells it."""
    for one in result.restarts:
        total: list[int] = []
        for trial in one.counted:
            for sample in recorded[trial.profile, trial.restart].get("samples") or ():
                counts = (sample.get("reply") or {}).get("correct_drafts") or ()
                total += [0] * (len(counts) - len(total))
                for place, count in enumerate(counts):
                    total[place] += count
        if sum(total):
            yield one.profile, tuple(count / sum(total) for count in total)


def _number_of(result: CompareResult, profile: str) -> int:
    return [one.profile for one in result.restarts].index(profile)
