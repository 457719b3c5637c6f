"""The properties that ``--query-gpu`` knows, by every spelling.

Names and sentences follow ``nvidia-smi --help-query-gpu`` of driver 580.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from eagleops.sim import gpus as driver
from eagleops.sim.faults import THROTTLE_BITS
from eagleops.sim.gpus import Gpu
from eagleops.sim.nvidia_smi.query import Field

Tell = Callable[[Gpu], str]


def _always(text: str) -> Tell:
    return lambda _: text


def _reason(bit: int) -> Tell:
    return lambda gpu: "Active" if gpu.throttle_mask & bit else "Not Active"


def _timestamp(_: Gpu) -> str:
    now = time.time()
    return f"{time.strftime('%Y/%m/%d %H:%M:%S', time.localtime(now))}.{int(now % 1 * 1000):03d}"


def _identity() -> Iterator[Field]:
    yield Field(("timestamp",), "", _timestamp, "The timestamp of when the query was made.")
    version = _always(driver.DRIVER_VERSION)
    yield Field(("driver_version",), "", version, "The version of the installed display driver.")
    yield Field(("name", "gpu_name"), "", lambda gpu: gpu.name, "The product name of the GPU.")
    yield Field(("index",), "", lambda gpu: str(gpu.number), "Zero based index of the GPU.")
    uuid = "The globally unique immutable alphanumeric identifier of the GPU."
    yield Field(("uuid", "gpu_uuid"), "", lambda gpu: gpu.uuid, uuid)
    bus_id = 'PCI bus id as "domain:bus:device.function", in hex.'
    yield Field(("pci.bus_id", "gpu_bus_id"), "", lambda gpu: gpu.bus_id, bus_id)
    fixed = {
        "serial": "[N/A]",
        "pci.device_id": "0x2BB110DE",
        "vbios_version": "98.02.55.00.00",
        "persistence_mode": "Enabled",
        "addressing_mode": "None",
        "gpu_recovery_action": "None",
        "compute_mode": "Default",
        "compute_cap": "12.0",
        "mig.mode.current": "[N/A]",
        "mig.mode.pending": "[N/A]",
        "ecc.mode.current": "Enabled",
        "ecc.mode.pending": "Enabled",
        "display_active": "Disabled",
        "display_attached": "No",
        "accounting.mode": "Disabled",
    }
    for name, value in fixed.items():
        yield Field((name,), "", _always(value), f"See {name} in the manual.")


def _link() -> Iterator[Field]:
    gen = "The current PCI-E link generation. These may be reduced when the GPU is not in use."
    names = ("pcie.link.gen.gpucurrent",)
    yield Field(("pcie.link.gen.current",), "", lambda gpu: str(gpu.pcie_gen), gen)
    yield Field(names, "", lambda gpu: str(gpu.pcie_gen), gen)
    width = "The current PCI-E link width. These may be reduced when the GPU is not in use."
    yield Field(("pcie.link.width.current",), "", lambda gpu: str(gpu.pcie_width), width)
    most = "The maximum possible with this GPU and system configuration."
    for name in ("pcie.link.gen.max", "pcie.link.gen.gpumax", "pcie.link.gen.hostmax"):
        yield Field((name,), "", _always("5"), most)
    yield Field(("pcie.link.width.max",), "", _always("16"), most)


def _reasons() -> Iterator[Field]:
    def spellings(name: str) -> tuple[str, str]:
        return f"clocks_event_reasons.{name}", f"clocks_throttle_reasons.{name}"

    active = "Bitmask of active clock event reasons. See nvml.h for more details."
    yield Field(spellings("active"), "", lambda gpu: f"0x{gpu.throttle_mask:016x}", active)
    supported = "Bitmask of supported clock event reasons. See nvml.h for more details."
    yield Field(spellings("supported"), "", _always("0x00000000000001ff"), supported)
    for name, bit in THROTTLE_BITS.items():
        yield Field(spellings(name), "", _reason(bit), "A factor that reduces clocks.")


def _memory() -> Iterator[Field]:
    total, reserved = driver.TOTAL_MIB, driver.RESERVED_MIB
    yield Field(("memory.total",), "MiB", _always(str(total)), "Total installed GPU memory.")
    about = "Total memory reserved by the NVIDIA driver and firmware."
    yield Field(("memory.reserved",), "MiB", _always(str(reserved)), about)
    used = "Total memory allocated by active contexts."
    yield Field(("memory.used",), "MiB", lambda gpu: str(gpu.used_mib), used)
    yield Field(("memory.free",), "MiB", lambda gpu: str(gpu.free_mib), "Total free memory.")


def _state() -> Iterator[Field]:
    about = "Percent of time over the past sample period during which kernels ran."
    busy = "utilization.gpu"
    yield Field((busy,), "%", lambda gpu: str(gpu.utilization_pct), about)
    memory = "Percent of time over the past sample period during which memory was used."
    share: Tell = lambda gpu: str(gpu.utilization_pct * 6 // 10)  # noqa: E731
    yield Field(("utilization.memory",), "%", share, memory)
    yield Field(("fan.speed",), "%", lambda gpu: str(30 + gpu.temperature_c // 5), "Fan speed.")
    yield Field(("pstate",), "", lambda gpu: gpu.pstate, "The current performance state.")
    degrees = "Core GPU temperature, in degrees C."
    yield Field(("temperature.gpu",), "", lambda gpu: str(gpu.temperature_c), degrees)
    yield Field(("temperature.memory",), "", _always("N/A"), "HBM memory temperature.")
    limit: Tell = lambda gpu: str(92 - gpu.temperature_c)  # noqa: E731
    yield Field(("temperature.gpu.tlimit",), "", limit, "Degrees C left to the T.Limit.")


def _power() -> Iterator[Field]:
    for name in ("power.draw", "power.draw.average", "power.draw.instant"):
        yield Field((name,), "W", lambda gpu: f"{gpu.power_w:.2f}", "Power draw of the board.")
    watts = _always(f"{driver.POWER_LIMIT_W:.2f}")
    for name in ("power.limit", "enforced.power.limit", "power.default_limit", "power.max_limit"):
        yield Field((name,), "W", watts, "The power limit in watts.")
    yield Field(("power.min_limit",), "W", _always("150.00"), "The lowest limit that can be set.")
    yield Field(("power.management",), "", _always("Enabled"), "Whether power is managed.")


def _clocks() -> Iterator[Field]:
    shader: Tell = lambda gpu: str(gpu.sm_clock_mhz)  # noqa: E731
    memory: Tell = lambda gpu: str(gpu.mem_clock_mhz)  # noqa: E731
    for long, short, tell in (
        ("graphics", "gr", shader),
        ("sm", "sm", shader),
        ("memory", "mem", memory),
    ):
        names = (f"clocks.current.{long}", f"clocks.{short}")
        yield Field(names, "MHz", tell, f"Current frequency of the {long} clock.")
    most = {"graphics": driver.SM_CLOCK_MAX_MHZ, "memory": driver.MEM_CLOCK_MAX_MHZ}
    most["sm"] = driver.SM_CLOCK_MAX_MHZ
    for long, mhz in most.items():
        names = (f"clocks.max.{long}", f"clocks.max.{'gr' if long == 'graphics' else long[:3]}")
        yield Field(names, "MHz", _always(str(mhz)), f"Highest frequency of the {long} clock.")
    gone = _always("[Requested functionality has been deprecated]")
    for names in (
        ("clocks.applications.graphics", "clocks.applications.gr"),
        ("clocks.applications.memory", "clocks.applications.mem"),
    ):
        yield Field(names, "MHz", gone, "Deprecated.")


def _counters() -> Iterator[Field]:
    for name in ("sw_power_cap", "sw_thermal_slowdown", "hw_thermal_slowdown", "sync_boost"):
        names = (f"clocks_event_reasons_counters.{name}",)
        yield Field(names, "us", _always("0"), "Time for which clocks were reduced.")
    for kind in ("corrected", "uncorrected"):
        for span in ("volatile", "aggregate"):
            names = (f"ecc.errors.{kind}.{span}.total",)
            yield Field(names, "", _always("0"), "Total errors detected across the entire chip.")


FIELDS: tuple[Field, ...] = (
    *_identity(),
    *_link(),
    *_reasons(),
    *_counters(),
    *_memory(),
    *_state(),
    *_power(),
    *_clocks(),
)
BY_NAME: dict[str, Field] = {name: field for field in FIELDS for name in field.names}


def help_text() -> str:
    """``--help-query-gpu``, in the real one's form."""
    lines = ['List of valid properties to query for the switch "--query-gpu":', ""]
    for field in FIELDS:
        lines += [" or ".join(f'"{name}"' for name in field.names), field.about, ""]
    return "\n".join(lines)
