"""What the GPUs did while something was measured: samples, and what is to be said of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from eagleops.gpu import Gpu

NUMBERS = (
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "mem_clock_mhz",
    "utilization_pct",
    "pcie_gen",
    "pcie_width",
    "used_mib",
)


@attrs.frozen
class Sample:
    """All GPUs at one moment.

    Attributes:
        at_s: By this client's monotonic clock, as near as the link allows to tell.
        utc_s: By the machine's clock, seconds of the epoch.
        gpus: Each one's facts by name, as :class:`eagleops.gpu.Gpu` has them.
    """

    at_s: float
    utc_s: float
    gpus: tuple[Mapping[str, Any], ...]


@attrs.frozen
class GpuWindow:
    """One GPU over a stretch of time.

    Attributes:
        medians, lows, highs: Of each of :data:`NUMBERS` that was told.
        throttled: The share of samples in which each reason held; idle clocks and clocks that
            somebody set are none.
    """

    index: int
    samples: int
    medians: Mapping[str, float]
    lows: Mapping[str, float]
    highs: Mapping[str, float]
    throttled: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The window as JSON: each number's median, with its lowest and highest."""
        numbers = {
            name: {"median": median, "low": self.lows[name], "high": self.highs[name]}
            for name, median in self.medians.items()
        }
        return {
            "index": self.index,
            "samples": self.samples,
            **numbers,
            "throttled": {reason: round(share, 4) for reason, share in self.throttled.items()},
        }


def samples_of(events: Iterable[tuple[float, Mapping[str, Any]]]) -> tuple[Sample, ...]:
    """The samples in the events of the ``telemetry`` operation.

    Args:
        events: Each with the time of its arrival by this client's monotonic clock. An event
            says what time it was over there when it was sent; the one that came quickest
            tells best how far the clocks are apart.
    """
    heard = list(events)
    if not heard:
        return ()
    ahead_s = min(at_s - event["now_s"] for at_s, event in heard)
    fields = next((event["fields"] for _, event in heard if event["event"] == "began"), ())
    return tuple(
        Sample(
            sample["t_s"] + ahead_s,
            event["utc_s"] - event["now_s"] + sample["t_s"],
            tuple(dict(zip(fields, row, strict=True)) for row in sample["gpus"]),
        )
        for _, event in heard
        if event["event"] == "samples"
        for sample in event["samples"]
    )


def between(samples: Iterable[Sample], begin_s: float, end_s: float) -> tuple[Sample, ...]:
    """The samples of a stretch of time."""
    return tuple(sample for sample in samples if begin_s <= sample.at_s <= end_s)


def windows(samples: Sequence[Sample]) -> tuple[GpuWindow, ...]:
    """Each GPU over all of ``samples``, by index."""
    by_index: dict[int, list[Mapping[str, Any]]] = {}
    for sample in samples:
        for gpu in sample.gpus:
            by_index.setdefault(gpu["index"], []).append(gpu)
    return tuple(_window(index, by_index[index]) for index in sorted(by_index))


def _window(index: int, rows: Sequence[Mapping[str, Any]]) -> GpuWindow:
    told = {name: [row[name] for row in rows if row.get(name) is not None] for name in NUMBERS}
    told = {name: values for name, values in told.items() if values}
    reasons = [Gpu(index, throttle_reasons=_tuple(row)).slowdowns for row in rows]
    known = [one for one in reasons if one is not None]
    names = sorted({reason for one in known for reason in one})
    return GpuWindow(
        index,
        len(rows),
        {name: statistics.median(values) for name, values in told.items()},
        {name: min(values) for name, values in told.items()},
        {name: max(values) for name, values in told.items()},
        {name: sum(name in one for one in known) / len(known) for name in names},
    )


def _tuple(row: Mapping[str, Any]) -> tuple[str, ...] | None:
    reasons = row.get("throttle_reasons")
    return None if reasons is None else tuple(reasons)
