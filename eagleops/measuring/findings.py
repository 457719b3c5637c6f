"""What was off while something was measured, in words. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eagleops.measuring.telemetry import GpuWindow
from eagleops.process import Process

# A clock moves by steps of 15 MHz or so; a fiftieth is what a speed would show.
CLOCK_SHARE = 0.02
_WORDS = {"sw": "SW", "hw": "HW"}


def reason_words(reason: str) -> str:
    """A throttle reason as people say it: ``sw_thermal_slowdown`` is ``SW thermal slowdown``."""
    return " ".join(_WORDS.get(word, word) for word in reason.split("_"))


def throttling(run: int, gpus: Sequence[GpuWindow]) -> tuple[str, ...]:
    """Each GPU that was slowed down in a run, why, and for how much of it."""
    return tuple(
        f"GPU {gpu.index} throttled ({reason_words(reason)}) for {_percent(share)} of run {run}"
        for gpu in gpus
        for reason, share in gpu.throttled.items()
        if share > 0
    )


def links(
    run: int, gpus: Sequence[GpuWindow], most: Mapping[int, Mapping[str, Any]]
) -> Iterator[str]:
    """Each GPU whose PCIe link was not all that it can be.

    Args:
        run: Its number.
        gpus: Over the run.
        most: Of each GPU ``max_pcie_gen`` and ``max_pcie_width``, where they are known.
    """
    for gpu in gpus:
        limits = most.get(gpu.index, {})
        width, widest = gpu.lows.get("pcie_width"), limits.get("max_pcie_width")
        if width is not None and widest and width < widest:
            yield f"GPU {gpu.index}: PCIe x{width:g} of x{widest:g} in run {run}"
        # An idle link drops to generation 1; at work it is at its best, or something is wrong.
        gen, newest = gpu.highs.get("pcie_gen"), limits.get("max_pcie_gen")
        if gen is not None and newest and gen < newest:
            yield f"GPU {gpu.index}: PCIe generation {gen:g} of {newest:g} in run {run}"


def clocks(run: int, gpus: Sequence[GpuWindow], usual: Mapping[int, float]) -> Iterator[str]:
    """Each GPU whose SM clock in a run was not what it was in the others.

    Args:
        run: Its number.
        gpus: Over the run.
        usual: Each GPU's median SM clock over all runs, in MHz.
    """
    for gpu in gpus:
        median, level = gpu.medians.get("sm_clock_mhz"), usual.get(gpu.index)
        if median is None or not level:
            continue
        if abs(median / level - 1) > CLOCK_SHARE:
            yield (
                f"GPU {gpu.index}: SM clock {median:g} MHz in run {run}, "
                f"{level:g} MHz over all runs"
            )
        low, high = gpu.lows["sm_clock_mhz"], gpu.highs["sm_clock_mhz"]
        if (high - low) / level > CLOCK_SHARE:
            yield f"GPU {gpu.index}: SM clock between {low:g} and {high:g} MHz in run {run}"


def usual_clocks(runs: Sequence[Sequence[GpuWindow]]) -> dict[int, float]:
    """Each GPU's median SM clock over all runs, in MHz."""
    seen: dict[int, list[float]] = {}
    for gpus in runs:
        for gpu in gpus:
            if "sm_clock_mhz" in gpu.medians:
                seen.setdefault(gpu.index, []).append(gpu.medians["sm_clock_mhz"])
    return {index: statistics.median(values) for index, values in seen.items()}


def others(processes: Sequence[Process], server: str, gpus: Collection[int]) -> tuple[str, ...]:
    """Whoever else holds memory on the server's GPUs."""
    return tuple(
        f"GPU {', '.join(map(str, shared))} is shared with PID {process.pid} "
        f"({(process.title or process.comm)[:60]}, {process.user}){_held(process)}"
        for process in processes
        if process.server != server
        and process.holds_gpu
        and (shared := sorted(set(process.gpu_devices) & set(gpus)))
    )


def gpus_of(processes: Sequence[Process], server: str) -> frozenset[int]:
    """The GPUs that a server's processes hold; empty where none is seen to."""
    return frozenset(
        index for process in processes if process.server == server for index in process.gpu_devices
    )


def _held(process: Process) -> str:
    mib = sum(value or 0 for value in process.gpu_mib.values())
    return f", which holds {mib:,} MiB" if mib else ""


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "less than 1 %"  # noqa: PLR2004
