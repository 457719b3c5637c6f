"""The box's GPUs as a driver would tell them at one moment."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from eagleops.sim import alive, faults
from eagleops.sim.holders import Sighting, sightings
from eagleops.sim.layout import Layout
from eagleops.sim.load import Load, loads

NAME = "NVIDIA RTX PRO 6000 Blackwell (simulated)"
DRIVER_VERSION = "580.159.04"
CUDA_VERSION = "13.0"
TOTAL_MIB = 97887
RESERVED_MIB = 638
# What the driver takes beside the processes' memory while there are any.
OVERHEAD_MIB = 9
POWER_LIMIT_W = 600.0
SM_CLOCK_MAX_MHZ = 2617
MEM_CLOCK_MAX_MHZ = 14001

FAN_IDLE_PCT = 30

_BUSES = ("01", "11", "21", "31", "81", "91", "A1", "B1")


class Process(NamedTuple):
    """A line of a GPU's process list."""

    pid: int
    title: str
    mib: int


class Health(NamedTuple):
    """What a GPU's counters tell of faults.

    Attributes:
        fan_pct: None where the fan cannot be read.
    """

    ecc: bool = True
    ecc_corrected: int = 0
    ecc_uncorrected: int = 0
    rows_pending: bool = False
    rows_failed: bool = False
    replays: int = 0
    fan_pct: int | None = FAN_IDLE_PCT
    power_limit_w: float = POWER_LIMIT_W

    @classmethod
    def of(cls, fault: Mapping[str, Any]) -> Health:
        """A sound GPU's, but for its faults."""
        return cls(**{name: fault[name] for name in cls._fields if name in fault})


class Gpu(NamedTuple):
    """One GPU at one moment.

    Attributes:
        number: Its index, from 0.
        throttle_mask: Bits of nvmlClocksEventReasons.
        lost: Fallen off the bus: nothing else of it can be told.
    """

    number: int
    uuid: str
    bus_id: str
    used_mib: int
    temperature_c: int
    power_w: float
    sm_clock_mhz: int
    mem_clock_mhz: int
    utilization_pct: int
    throttle_mask: int
    pcie_gen: int
    pcie_width: int
    pstate: str
    lost: bool
    processes: tuple[Process, ...]
    health: Health = Health()

    @property
    def name(self) -> str:
        """The product name."""
        return NAME

    @property
    def free_mib(self) -> int:
        """What a new process could have."""
        return TOTAL_MIB - RESERVED_MIB - self.used_mib


def bus_id(index: int) -> str:
    """The PCI address as nvidia-smi writes it: domain of eight digits."""
    return f"00000000:{_BUSES[index % 8]}:{index // 8:02X}.0"


def read_gpus(layout: Layout) -> list[Gpu]:
    """Every GPU of the box, as of now."""
    broken = faults.read(layout)
    seen = sightings(layout, broken)
    identity = layout.identity()
    now_s = time.monotonic()
    busy = loads(layout)
    return [
        _gpu(
            index,
            f"GPU-51{identity.serial}-0000-4000-8000-{index:012d}",
            [sighting for sighting in seen if sighting.holder.gpu == index],
            [load for load in busy if index in load.gpus],
            faults.of_gpu(broken, index),
            now_s,
        )
        for index in range(identity.gpus)
    ]


def _gpu(
    index: int,
    uuid: str,
    seen: list[Sighting],
    busy: list[Load],
    fault: Mapping[str, Any],
    now_s: float,
) -> Gpu:
    living = [sighting.holder for sighting in seen if sighting.died_s is None]
    held_mib = sum(sighting.held_mib for sighting in seen) + int(fault.get("foreign_mib", 0))
    decoding = any(load.busy for load in busy)
    heat = max((load.heat_at(now_s) for load in busy), default=0.0)
    reasons = fault.get("throttle_reasons", [] if living else ["gpu_idle"])
    throttled = bool(set(reasons) - {"gpu_idle"})
    return Gpu(
        index,
        uuid,
        bus_id(index),
        held_mib + (OVERHEAD_MIB if held_mib else 0),
        fault.get("temperature_c", round(32 + _own(index) * 4 + 3 * bool(living) + 37 * heat)),
        fault.get("power_w", _power_w(index, now_s, held=bool(living), decoding=decoding)),
        fault.get("sm_clock_mhz", _sm_clock_mhz(index, held=bool(living), throttled=throttled)),
        MEM_CLOCK_MAX_MHZ if living else 405,
        (97 + index % 3) if decoding else 0,
        sum(faults.THROTTLE_BITS[reason] for reason in reasons),
        fault.get("pcie_gen", 5 if living else 1),
        fault.get("pcie_width", 16),
        "P1" if living else "P8",
        bool(fault.get("lost")),
        tuple(Process(holder.pid, alive.title(holder.pid), holder.mib) for holder in living),
        Health.of(fault),
    )


def _own(index: int) -> float:
    """What makes this GPU a little unlike the others: 0 to 1."""
    return (index * 0.618034) % 1.0


def _power_w(index: int, now_s: float, *, held: bool, decoding: bool) -> float:
    level_w = 214.0 if decoding else 71.0 if held else 27.0
    ripple = math.sin(now_s * 1.7 + index) * (0.03 if decoding else 0.005)
    return level_w * (1 + 0.05 * _own(index) + ripple)


def _sm_clock_mhz(index: int, *, held: bool, throttled: bool) -> int:
    if not held:
        return 180
    return 1102 if throttled else SM_CLOCK_MAX_MHZ - 15 * (index % 4)
