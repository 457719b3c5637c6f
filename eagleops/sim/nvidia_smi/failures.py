"""Ways in which nvidia-smi fails as a whole: what it prints, on stdout, and its exit status."""

from __future__ import annotations

from eagleops.sim.gpus import Gpu

_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
    "that the latest NVIDIA driver is installed and running.\n"
)

# The exit status is NVML's return code.
FAILURES = {
    "driver_mismatch": (
        18,
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.159",
    ),
    "not_loaded": (
        9,
        _NO_DRIVER,
    ),
    "no_devices": (6, "No devices were found"),
    "unknown_error": (255, "Failed to initialize NVML: Unknown Error"),
}

LOST_STATUS = 15


def lost(gpu: Gpu) -> str:
    """What stands in the place of a GPU that has fallen off the bus."""
    return (
        f"Unable to determine the device handle for GPU{gpu.number}: {gpu.bus_id[4:]}: "
        f"GPU is lost.  Reboot the system to recover this GPU"
    )
