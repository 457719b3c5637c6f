"""``nvidia-smi -q -x``: the part of its tree that is worth reading."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from eagleops.sim import gpus as driver
from eagleops.sim.faults import THROTTLE_BITS
from eagleops.sim.gpus import Gpu

Tree = Mapping[str, "str | Tree | list[Tree]"]


def _escape(text: str) -> str:
    # xml.sax.saxutils would bring urllib along, and a fifth of a query's time.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _lines(tree: Tree, depth: int) -> list[str]:
    pad = "\t" * depth
    lines = []
    for tag, value in tree.items():
        if isinstance(value, str):
            lines.append(f"{pad}<{tag}>{_escape(value)}</{tag}>")
            continue
        for child in value if isinstance(value, list) else [value]:
            lines += [f"{pad}<{tag}>", *_lines(child, depth + 1), f"{pad}</{tag}>"]
    return lines


def _processes(gpu: Gpu) -> Tree:
    return {
        "process_info": [
            {
                "gpu_instance_id": "N/A",
                "compute_instance_id": "N/A",
                "pid": str(process.pid),
                "type": "C",
                "process_name": process.title,
                "used_memory": f"{process.mib} MiB",
            }
            for process in gpu.processes
        ]
    }


def _link(gpu: Gpu) -> Tree:
    return {
        "pcie_gen": {
            "max_link_gen": "5",
            "current_link_gen": str(gpu.pcie_gen),
            "device_current_link_gen": str(gpu.pcie_gen),
            "max_device_link_gen": "5",
            "max_host_link_gen": "5",
        },
        "link_widths": {
            "max_link_width": "16x",
            "current_link_width": f"{gpu.pcie_width}x",
        },
    }


def _ecc(gpu: Gpu) -> Tree:
    def told(count: int) -> str:
        return str(count) if gpu.health.ecc else "N/A"

    counts = {
        "sram_correctable": told(0),
        "sram_uncorrectable_parity": told(0),
        "sram_uncorrectable_secded": told(0),
        "dram_correctable": told(gpu.health.ecc_corrected),
        "dram_uncorrectable": told(gpu.health.ecc_uncorrected),
    }
    return {
        "volatile": counts,
        "aggregate": {**counts, "sram_threshold_exceeded": "No" if gpu.health.ecc else "N/A"},
    }


def _remapped_rows(gpu: Gpu) -> Tree:
    return {
        "remapped_row_corr": "0",
        "remapped_row_unc": "0",
        "remapped_row_pending": "Yes" if gpu.health.rows_pending else "No",
        "remapped_row_failure": "Yes" if gpu.health.rows_failed else "No",
    }


def _fan(gpu: Gpu) -> str:
    return "Unknown Error" if gpu.health.fan_pct is None else f"{gpu.health.fan_pct} %"


def _gpu(gpu: Gpu) -> Tree:
    reasons = {
        f"clocks_event_reason_{name}": "Active" if gpu.throttle_mask & bit else "Not Active"
        for name, bit in THROTTLE_BITS.items()
    }
    mode = "Enabled" if gpu.health.ecc else "Disabled"
    return {
        "product_name": gpu.name,
        "product_brand": "NVIDIA RTX",
        "product_architecture": "Blackwell",
        "persistence_mode": "Enabled",
        "uuid": gpu.uuid,
        "minor_number": str(gpu.number),
        "vbios_version": "98.02.55.00.00",
        "gpu_recovery_action": "None",
        "pci": {
            "pci_bus_id": gpu.bus_id,
            "pci_gpu_link_info": _link(gpu),
            "replay_counter": str(gpu.health.replays),
        },
        "fan_speed": _fan(gpu),
        "performance_state": gpu.pstate,
        "clocks_event_reasons": reasons,
        "fb_memory_usage": {
            "total": f"{driver.TOTAL_MIB} MiB",
            "reserved": f"{driver.RESERVED_MIB} MiB",
            "used": f"{gpu.used_mib} MiB",
            "free": f"{gpu.free_mib} MiB",
        },
        "compute_mode": "Default",
        "utilization": {"gpu_util": f"{gpu.utilization_pct} %"},
        "ecc_mode": {"current_ecc": mode, "pending_ecc": mode},
        "ecc_errors": _ecc(gpu),
        "remapped_rows": _remapped_rows(gpu),
        "temperature": {"gpu_temp": f"{gpu.temperature_c} C"},
        "gpu_power_readings": {
            "power_state": gpu.pstate,
            "average_power_draw": f"{gpu.power_w:.2f} W",
            "instant_power_draw": f"{gpu.power_w:.2f} W",
            "current_power_limit": f"{gpu.health.power_limit_w:.2f} W",
            "default_power_limit": f"{driver.POWER_LIMIT_W:.2f} W",
        },
        "clocks": {
            "graphics_clock": f"{gpu.sm_clock_mhz} MHz",
            "sm_clock": f"{gpu.sm_clock_mhz} MHz",
            "mem_clock": f"{gpu.mem_clock_mhz} MHz",
        },
        "max_clocks": {
            "sm_clock": f"{driver.SM_CLOCK_MAX_MHZ} MHz",
            "mem_clock": f"{driver.MEM_CLOCK_MAX_MHZ} MHz",
        },
        "processes": _processes(gpu),
    }


def document(gpus: Sequence[Gpu]) -> str:
    """The whole document."""
    lines = [
        '<?xml version="1.0" ?>',
        '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">',
        "<nvidia_smi_log>",
        f"\t<timestamp>{time.strftime('%a %b %e %H:%M:%S %Y')}</timestamp>",
        f"\t<driver_version>{driver.DRIVER_VERSION}</driver_version>",
        f"\t<cuda_version>{driver.CUDA_VERSION}</cuda_version>",
        f"\t<attached_gpus>{len(gpus)}</attached_gpus>",
    ]
    for gpu in gpus:
        if not gpu.lost:
            lines += [f'\t<gpu id="{gpu.bus_id}">', *_lines(_gpu(gpu), 2), "\t</gpu>", ""]
    return "\n".join([*lines, "</nvidia_smi_log>"])
