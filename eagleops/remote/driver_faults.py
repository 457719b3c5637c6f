"""Known ways in which the NVIDIA driver says no: what each means, and the way out.

Messages are matched, not exit statuses: nvidia-smi prints most of them on stdout, and the
same texts come from NVML's ``nvmlErrorString``.
"""

from __future__ import annotations

import re
from typing import Iterable, List, NamedTuple, Optional, Pattern

# What is said of a machine that has fewer GPUs than it was built with.
LOST_GPU = "a GPU is lost to the driver"
# And of one that may be lost, or only does not answer.
OFF_THE_BUS = "fallen off the PCIe bus"

MODULE_VERSION_FILE = "/proc/driver/nvidia/version"


class Fault(NamedTuple):
    """One known failure: how it is told by the driver, its cause, and what helps."""

    told: Pattern[str]
    cause: str
    way_out: str


FAULTS = (
    Fault(
        re.compile(r"driver/library version mismatch", re.IGNORECASE),
        "the driver's library is not of the version of the loaded kernel module{module}",
        "In a container, install the host's driver version (libraries alone). On the host, "
        "reboot, or unload and load the nvidia modules: the driver was upgraded under them.",
    ),
    Fault(
        re.compile(
            r"couldn't communicate with the NVIDIA driver|driver (is )?not loaded", re.IGNORECASE
        ),
        "no NVIDIA kernel module is loaded, or its device files are missing here",
        "On the host: modprobe nvidia, then nvidia-smi. In a container, also check that "
        "/dev/nvidia0 and /dev/nvidiactl are handed in.",
    ),
    Fault(
        re.compile(r"no devices were found", re.IGNORECASE),
        "the driver is loaded and shows no GPU here",
        "In a container, check that /dev/nvidia* are handed in and that the device cgroup "
        "allows them. On the host, check lspci, and whether vfio-pci took the GPUs for a VM.",
    ),
    Fault(
        re.compile(r"GPU is lost|GPU access blocked|fallen off the bus", re.IGNORECASE),
        LOST_GPU + ", mostly because it has " + OFF_THE_BUS,
        "Look for Xid 79 in the host's kernel log (dmesg | grep -i xid); only a reboot of the "
        "host or a power cycle brings the GPU back.",
    ),
    Fault(
        re.compile(r"unable to determine the device handle", re.IGNORECASE),
        "a GPU does not answer the driver, mostly because it has " + OFF_THE_BUS,
        "Look for Xid in the host's kernel log (dmesg | grep -i xid); a reboot of the host or "
        "a power cycle brings the GPU back.",
    ),
    Fault(
        re.compile(r"infoROM is corrupted", re.IGNORECASE),
        "a GPU's infoROM is damaged; the other figures hold",
        "The GPU works; have it replaced or re-flashed by its vendor when that suits.",
    ),
    Fault(
        re.compile(r"insufficient permissions", re.IGNORECASE),
        "this user may not open the GPUs' device files",
        "Check the rights of /dev/nvidia* and /dev/nvidiactl, and the container's device cgroup.",
    ),
    Fault(
        re.compile(r"failed to initialize NVML: unknown error", re.IGNORECASE),
        "the device files cannot be opened, mostly because the device cgroup refuses them",
        "Restart the container; for LXC check its lxc.cgroup2.devices.allow lines for "
        "/dev/nvidia* and /dev/nvidia-uvm.",
    ),
)


def explain(line: str, module: Optional[str] = None) -> Optional[str]:
    """The sentence for a known failure that ``line`` tells, or None.

    Args:
        line: A line of the driver's output.
        module: The version of the loaded kernel module, where it is known.
    """
    for fault in FAULTS:
        if fault.told.search(line):
            cause = fault.cause.format(module=" ({})".format(module) if module else "")
            return "{}: {}. {}".format(line.strip().rstrip("."), cause, fault.way_out)
    return None


def explain_all(lines: Iterable[str], module: Optional[str] = None) -> List[str]:
    """The sentences for every known failure in ``lines``, each once."""
    sentences = [explain(line, module) for line in lines]
    return list(dict.fromkeys(sentence for sentence in sentences if sentence is not None))


def parse_module_version(text: str) -> Optional[str]:
    """The version of the loaded kernel module, from /proc/driver/nvidia/version's text."""
    found = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None


def module_version() -> Optional[str]:
    """The version of the kernel module that is loaded, or None."""
    try:
        with open(MODULE_VERSION_FILE, encoding="utf-8", errors="replace") as file:
            return parse_module_version(file.read())
    except OSError:
        return None
