"""Operation ``telemetry``: the GPUs' state again and again, while something is measured."""

from __future__ import annotations

import time
from typing import Any, Dict, Generator, List, Optional, Sequence

from eagleops.remote.context import Context
from eagleops.remote.gpus import Gpus

# What a sample tells of a GPU, in this order: a row of values costs a third of a mapping.
FIELDS = (
    "index",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "mem_clock_mhz",
    "utilization_pct",
    "throttle_reasons",
    "pcie_gen",
    "pcie_width",
    "used_mib",
)
BATCH_S = 0.5
# One nvidia-smi takes 36 ms of a processor: five a second are enough, ten would be felt.
NVIDIA_SMI_INTERVAL_S = 0.18

Steps = Generator[Dict[str, Any], None, Dict[str, Any]]


def telemetry(
    context: Context,
    interval_s: float = 0.1,
    gpus: Optional[Sequence[int]] = None,
    duration_s: Optional[float] = None,
) -> Steps:
    """Samples the GPUs until it is called off.

    Args:
        context: The operation's surroundings.
        interval_s: From one sample to the next; through nvidia-smi at least 0.18 s.
        gpus: Indices of those to tell of; without them all.
        duration_s: End by itself after so long.

    Yields:
        ``began``: ``source`` (``nvml`` or ``nvidia-smi``), ``interval_s``, ``fields``,
        ``now_s`` (this machine's monotonic clock) and ``utc_s``; then each half second
        ``samples``: ``now_s``, ``utc_s``, ``problem`` (what the driver says) and ``samples``,
        each with ``t_s`` (monotonic, the middle of the reading), ``took_s`` and ``gpus``: a
        row of ``fields`` for each.

    Returns:
        ``samples``, how many there were, and ``problem``, what the driver said at last.
    """
    with Gpus(context) as source:
        if source.source != "nvml":
            interval_s = max(interval_s, NVIDIA_SMI_INTERVAL_S)
        yield _stamped("began", source=source.source, interval_s=interval_s, fields=list(FIELDS))
        sampler = _Sampler(source, None if gpus is None else set(gpus))
        return (yield from sampler.run(context, interval_s, duration_s))


class _Sampler:
    """One run of the operation."""

    def __init__(self, source: Gpus, wanted: Optional[Any]) -> None:
        self._source = source
        self._wanted = wanted
        self._count = 0
        self._problem: Optional[str] = None

    def run(self, context: Context, interval_s: float, duration_s: Optional[float]) -> Steps:
        began_s = told_s = due_s = time.monotonic()
        batch: List[Dict[str, Any]] = []
        while duration_s is None or time.monotonic() - began_s < duration_s:
            sample = self._sample()
            if sample is None:
                break
            batch.append(sample)
            now_s = time.monotonic()
            if now_s - told_s >= BATCH_S:
                yield _stamped("samples", samples=batch, problem=self._problem)
                batch, told_s = [], now_s
            # On one schedule; a sample that comes late is not made up for by a burst.
            due_s = max(due_s + interval_s, now_s)
            context.sleep(due_s - now_s)
        if batch:
            yield _stamped("samples", samples=batch, problem=self._problem)
        return {"samples": self._count, "problem": self._problem}

    def _sample(self) -> Optional[Dict[str, Any]]:
        """A sample; None where there is nothing to read."""
        before_s = time.monotonic()
        reading = self._source.state()
        after_s = time.monotonic()
        self._problem = reading.problem
        if self._source.source == "none":
            return None
        self._count += 1
        rows = [
            [gpu[field] for field in FIELDS]
            for gpu in reading.gpus
            if self._wanted is None or gpu["index"] in self._wanted
        ]
        middle_s, took_s = (before_s + after_s) / 2, after_s - before_s
        return {"t_s": round(middle_s, 4), "took_s": round(took_s, 4), "gpus": rows}


def _stamped(event: str, **facts: Any) -> Dict[str, Any]:
    return dict(facts, event=event, now_s=time.monotonic(), utc_s=time.time())
