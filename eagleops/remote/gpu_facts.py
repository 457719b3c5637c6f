"""What is told of a GPU, whichever source told it: its fields, and what clock reasons mean."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

Facts = Dict[str, Any]

# Bits of nvmlClocksEventReasons, named as nvidia-smi's query fields end
# (docs.nvidia.com/deploy/nvml-api, group nvmlClocksEventReasons).
CLOCK_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clocks_setting",
}


class Reading(NamedTuple):
    """One look at every GPU.

    Attributes:
        gpus: Facts of each, as :func:`unread` names them, in the order of their index.
        problem: What kept the reading from being whole, with its cause and the way out.
    """

    gpus: List[Facts]
    problem: Optional[str] = None
    driver_version: Optional[str] = None


def unread(index: int) -> Facts:
    """The facts of a GPU of which nothing is known but its index.

    ``None`` means "not told" in every field, never zero. ``minor`` is the number in the
    name of its device file, which is not its index where a container has only some GPUs.
    """
    return {
        "index": index,
        "uuid": None,
        "name": None,
        "bus_id": None,
        "minor": None,
        "used_mib": None,
        "total_mib": None,
        "reserved_mib": None,
        "temperature_c": None,
        "power_w": None,
        "power_limit_w": None,
        "sm_clock_mhz": None,
        "mem_clock_mhz": None,
        "utilization_pct": None,
        "throttle_reasons": None,
        "pcie_gen": None,
        "pcie_width": None,
        "processes": [],
    }


def clock_reasons(mask: int) -> List[str]:
    """The names of the bits in ``mask``; a bit without a name stands as its hex value."""
    bits = [1 << place for place in range(mask.bit_length()) if mask >> place & 1]
    return [CLOCK_REASONS.get(bit, hex(bit)) for bit in bits]
