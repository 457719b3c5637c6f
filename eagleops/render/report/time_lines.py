"""What the GPUs did while each restart was measured, drawn over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import attrs

from eagleops.comparison.trial import Trial
from eagleops.gpu import Gpu
from eagleops.render.page.drawing import GRID, WARNING, Plot, colour, figure, svg
from eagleops.workflows.compare_result import CompareResult

# More points than pixels tell nothing.
MOST_POINTS = 300
_LINES = (
    ("power_w", "power, W (all GPUs)", sum),
    ("temperature_c", "°C (warmest)", max),
    ("sm_clock_mhz", "SM clock, MHz (slowest)", min),
)
Recorded = Mapping[tuple[str, int], Mapping[str, Any]]


@attrs.frozen
class TimeLine:
    """One restart over time.

    Attributes:
        plot: None where the GPUs were not watched.
    """

    trial: Trial
    plot: Plot | None


def time_lines(result: CompareResult, recorded: Recorded) -> tuple[TimeLine, ...]:
    """A time line for each restart that was measured."""
    names = [one.profile for one in result.restarts]
    return tuple(
        TimeLine(
            trial,
            _plot(trial, recorded[trial.profile, trial.restart], names.index(trial.profile)),
        )
        for trial in result.trials
        if trial.requests
    )


def _plot(trial: Trial, parts: Mapping[str, Any], number: int) -> Plot | None:
    samples: Sequence[Mapping[str, Any]] = (parts.get("telemetry") or {}).get("samples") or ()
    if len(samples) < 2:  # noqa: PLR2004 - no line from one point
        return None
    samples = samples[:: max(1, len(samples) // MOST_POINTS)]
    began_s = float(samples[0]["utc_s"])
    times = [float(sample["utc_s"]) - began_s for sample in samples]
    with figure(3.6, 3.7) as drawn:
        rows = drawn.subplots(len(_LINES), 1, sharex=True)
        words = []
        for axes, (field, title, of) in zip(rows, _LINES, strict=True):
            points = [_value(sample, field, of) for sample in samples]
            told = [point for point in points if point is not None]
            axes.plot(
                times,
                [float("nan") if point is None else point for point in points],
                color=colour(number),
                linewidth=1.6,
            )
            axes.set_title(title)
            _requests(axes, parts, began_s)
            _throttling(axes, samples, times)
            if told:
                words.append(f"{title}: {min(told):.0f} to {max(told):.0f}")
        rows[-1].set_xlabel("seconds")
        name = f"line-{number}-{trial.restart}"
        title = f"{trial.profile}, restart {trial.restart}"
        return svg(drawn, name, f"GPUs during {title}", "; ".join(words) + ".")


def _value(sample: Mapping[str, Any], field: str, of: Any) -> float | None:
    told = [gpu[field] for gpu in sample["gpus"] if gpu.get(field) is not None]
    return float(of(told)) if told else None


def _requests(axes: Any, parts: Mapping[str, Any], began_s: float) -> None:
    """Shades each request that counts."""
    offset_s = float((parts.get("clock") or {}).get("offset_s") or 0.0)
    for one in parts.get("samples") or ():
        if "begun_utc" not in one:
            continue
        begun = datetime.fromisoformat(str(one["begun_utc"]).replace("Z", "+00:00"))
        start = begun.timestamp() + offset_s - began_s
        axes.axvspan(
            start, start + float(one["reply"]["last_s"]), color=GRID, linewidth=0, zorder=0
        )


def _throttling(axes: Any, samples: Sequence[Mapping[str, Any]], times: Sequence[float]) -> None:
    """Marks the moments at which a GPU was slowed down, at the foot."""
    slowed = [
        at_s
        for sample, at_s in zip(samples, times, strict=True)
        if any(_slowdowns(gpu) for gpu in sample["gpus"])
    ]
    if slowed:
        foot = axes.get_ylim()[0]
        axes.plot(slowed, [foot] * len(slowed), "x", color=WARNING, markersize=5, clip_on=False)


def _slowdowns(gpu: Mapping[str, Any]) -> tuple[str, ...] | None:
    reasons = gpu.get("throttle_reasons")
    return Gpu(
        int(gpu["index"]), throttle_reasons=None if reasons is None else tuple(reasons)
    ).slowdowns
