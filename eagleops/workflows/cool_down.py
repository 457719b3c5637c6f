"""Cool down: wait until the GPUs are as they were before the first measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs

from eagleops.gpu import Gpu
from eagleops.workflows.progress import Progress, Step
from eagleops.workflows.verify import Asked

# A sensor tells whole degrees and wanders by one; a clock moves by steps of 15 MHz.
TEMPERATURE_C = 3
CLOCK_SHARE = 0.1
CLOCK_MHZ = 30
INTERVAL_S = 1.0


@attrs.frozen
class Band:
    """Where the GPUs started: the highest temperature and SM clock of each, by index."""

    temperature_c: Mapping[int, float]
    sm_clock_mhz: Mapping[int, float]

    @classmethod
    def around(cls, gpus: Iterable[Gpu]) -> Band:
        """The band that begins at what ``gpus`` show now."""
        seen = tuple(gpus)
        return cls(
            {g.index: g.temperature_c + TEMPERATURE_C for g in seen if g.temperature_c is not None},
            {
                g.index: g.sm_clock_mhz * (1 + CLOCK_SHARE) + CLOCK_MHZ
                for g in seen
                if g.sm_clock_mhz is not None
            },
        )

    def above(self, gpus: Iterable[Gpu]) -> Iterator[str]:
        """What is still above the band, in words."""
        for gpu in gpus:
            warmest = self.temperature_c.get(gpu.index)
            if warmest is not None and (gpu.temperature_c or 0) > warmest:
                yield f"GPU {gpu.index} at {gpu.temperature_c} °C (band: {warmest:.0f})"
            fastest = self.sm_clock_mhz.get(gpu.index)
            if fastest is not None and (gpu.sm_clock_mhz or 0) > fastest:
                yield f"GPU {gpu.index} at {gpu.sm_clock_mhz} MHz (band: {fastest:.0f})"

    def to_dict(self) -> dict[str, Any]:
        """The band as JSON."""
        return {
            "temperature_c": {str(k): v for k, v in self.temperature_c.items()},
            "sm_clock_mhz": {str(k): v for k, v in self.sm_clock_mhz.items()},
        }


def look(machine: Asked) -> tuple[Gpu, ...]:
    """The GPUs as they are.

    Raises:
        Unreachable: if the machine cannot be reached, or was lost.
    """
    return tuple(map(Gpu.from_dict, machine.call("snapshot", servers=False)["gpus"]))


def cool_down(
    machine: Asked,
    band: Band,
    *,
    limit_s: float,
    progress: Progress,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Waits until every GPU is back in ``band``.

    Args:
        machine: Whose GPUs.
        band: Where they started.
        limit_s: How long at most; 0 for not at all.
        progress: Told of each look.
        sleep: How to wait.

    Returns:
        What was still above the band when the limit was over; empty where nothing was.

    Raises:
        Unreachable: if the machine cannot be reached, or was lost.
    """
    if limit_s <= 0:
        return ""
    progress(Step("cool_down"))
    began_s = time.monotonic()
    while above := tuple(band.above(look(machine))):
        progress(Step("cool_down", {"event": "state", "state": "warm", "detail": above[0]}))
        if time.monotonic() - began_s >= limit_s:
            return f"not cooled down within {limit_s:g} s: {', '.join(above)}"
        sleep(INTERVAL_S)
    return ""
