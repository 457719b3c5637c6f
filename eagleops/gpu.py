"""A GPU as it was at one moment, and what it may hold when it is idle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import cattrs

_CONVERTER = cattrs.Converter()

# An idle clock, or one that somebody set on purpose, is no slowdown.
_UNREMARKABLE_REASONS = frozenset(
    {
        "gpu_idle",
        "applications_clocks_setting",
        "display_clocks_setting",
    }
)


@attrs.frozen
class GpuProcess:
    """A process in a GPU's own list. Its PID may be another namespace's."""

    pid: int
    used_mib: int | None = None


@attrs.frozen
class Gpu:
    """One GPU's facts; None in any field means that the driver did not tell it.

    Attributes:
        index: As NVML and nvidia-smi count here; a container counts its own GPUs.
        minor: The number in its device file's name.
        used_mib: Memory that contexts hold; not what the driver reserves for itself, but for
            drivers before 510, which tell both in one.
        throttle_reasons: What holds its clocks back, as nvidia-smi's query fields end.
        processes: Its own list. Empty does not mean unused: since driver 535 it leaves out
            other PID namespaces.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    bus_id: str | None = None
    minor: int | None = None
    used_mib: int | None = None
    total_mib: int | None = None
    reserved_mib: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    mem_clock_mhz: int | None = None
    utilization_pct: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    processes: tuple[GpuProcess, ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Gpu:
        """A GPU from the JSON of the ``snapshot`` and ``drain`` operations."""
        return _CONVERTER.structure(data, cls)

    def to_dict(self) -> dict[str, Any]:
        """The GPU as JSON."""
        return attrs.asdict(self)

    @property
    def slowdowns(self) -> tuple[str, ...] | None:
        """The reasons that slow work down; None where none were told, empty where none hold."""
        if self.throttle_reasons is None:
            return None
        return tuple(r for r in self.throttle_reasons if r not in _UNREMARKABLE_REASONS)

    def holds_more_than(self, level_mib: int) -> bool:
        """Whether memory above an idle level is held; False where no memory is told."""
        return self.used_mib is not None and self.used_mib > level_mib
