"""What is broken on a box, as a file tells: for tests, and to be shown.

.. code-block:: json

    {"gpus": {"3": {"throttle_reasons": ["hw_thermal_slowdown"], "temperature_c": 93}},
     "nvidia_smi": {"delay_s": 2.0}}

Of a GPU: ``throttle_reasons`` (names as in nvidia-smi's query fields), ``temperature_c``,
``power_w``, ``sm_clock_mhz``, ``pcie_gen``, ``pcie_width``, ``lost`` (true: fallen off the
bus), ``stuck_s`` (memory stays held for so long after a death before it begins to fall),
``foreign_mib`` (held by nobody to be seen: another container), ``speed`` (the token rate of
a server on this GPU, 1 is whole). Of its health: ``ecc`` (false: switched off),
``ecc_corrected`` and ``ecc_uncorrected`` (counts since the driver was loaded),
``rows_pending`` and ``rows_failed`` (true), ``replays`` (of the PCIe link), ``fan_pct`` (null:
the fan cannot be read), ``power_limit_w``. Of ``nvidia_smi``: ``error`` (a name in
:data:`eagleops.sim.nvidia_smi.failures.FAILURES`), ``delay_s``. What the kernel's log tells is
written by :mod:`eagleops.sim.kernel_log`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagleops.sim.layout import Layout
from eagleops.sim.layout import read as read_file

GPU_FAULTS = frozenset(
    {
        "throttle_reasons",
        "temperature_c",
        "power_w",
        "sm_clock_mhz",
        "pcie_gen",
        "pcie_width",
        "lost",
        "stuck_s",
        "foreign_mib",
        "speed",
        "ecc",
        "ecc_corrected",
        "ecc_uncorrected",
        "rows_pending",
        "rows_failed",
        "replays",
        "fan_pct",
        "power_limit_w",
    }
)
NVIDIA_SMI_FAULTS = frozenset({"error", "delay_s"})

# Bits of nvmlClocksEventReasons, named as nvidia-smi's query fields end.
THROTTLE_BITS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}

Faults = Mapping[str, Any]
NONE: Faults = {"gpus": {}, "nvidia_smi": {}}


def read(layout: Layout) -> Faults:
    """The faults that are set; an absent file is a sound box."""
    try:
        text = read_file(layout.faults)
    except FileNotFoundError:
        return NONE
    import json

    return {**NONE, **json.loads(text)}


def of_gpu(faults: Faults, index: int) -> Mapping[str, Any]:
    """The faults of one GPU."""
    fault: Mapping[str, Any] = faults["gpus"].get(str(index), {})
    return fault


def check(faults: Faults) -> None:
    """Refuses what would be ignored.

    Raises:
        ValueError: for a fault or a throttle reason that is not known.
    """
    unknown = set(faults) - set(NONE)
    for fault in faults.get("gpus", {}).values():
        unknown |= set(fault) - GPU_FAULTS
        unknown |= set(fault.get("throttle_reasons", ())) - set(THROTTLE_BITS)
    unknown |= set(faults.get("nvidia_smi", {})) - NVIDIA_SMI_FAULTS
    if unknown:
        raise ValueError(f"no such fault: {', '.join(sorted(unknown))}")


def speed(faults: Faults, gpus: tuple[int, ...]) -> float:
    """How fast a server on these GPUs goes, 1 being whole: as its slowest GPU."""
    return min((float(of_gpu(faults, gpu).get("speed", 1.0)) for gpu in gpus), default=1.0)
