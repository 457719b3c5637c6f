"""What a GPU machine can be badly set up in, read from /proc, /sys and /dev. Changes nothing."""

from __future__ import annotations

import glob
import os
import struct
from typing import Any, Dict, List, Optional, Sequence, Set

Facts = Dict[str, Any]

PCI = "/sys/bus/pci/devices"
NODES = "/sys/devices/system/node"
# PCI Express Base Specification, 7.7.8: the extended capability, and its control register's bit
# that sends peer-to-peer requests up to the root instead of straight to the peer.
_ACS, _ACS_CONTROL, _REDIRECT = 0x000D, 6, 1 << 2
_EXTENDED = 0x100
_CONFIG_BYTES = 4096
_BRIDGE, _DISPLAY, _NVIDIA = "0x0604", "0x03", "0x10de"


def box_facts(device_prefix: str, paths: Sequence[str] = ()) -> Facts:
    """All of them; None where one cannot be read.

    Args:
        device_prefix: Of the GPUs' device files.
        paths: Files or folders whose file system's free room is of interest.
    """
    return {
        "kernel_cmdline": _text("/proc/cmdline"),
        "acs": acs(),
        "gpu_iommu": gpu_iommu(),
        "thp": _chosen(_text("/sys/kernel/mm/transparent_hugepage/enabled")),
        "numa_balancing": _number("/proc/sys/kernel/numa_balancing"),
        "numa_nodes": len(glob.glob(os.path.join(NODES, "node[0-9]*"))) or None,
        "control_devices": {name: _opened(device_prefix + name) for name in ("ctl", "-uvm")},
        "tmp_noexec": _no_exec("/tmp"),
        "paths": [room(path) for path in paths],
    }


def acs(pci: str = PCI) -> Optional[Facts]:
    """Bridges, and those that redirect requests between peers; None where root alone may read."""
    bridges, redirecting = 0, []
    for folder in sorted(glob.glob(os.path.join(pci, "*"))):
        if not (_text(os.path.join(folder, "class")) or "").startswith(_BRIDGE):
            continue
        config = _bytes(os.path.join(folder, "config"))
        if config is None or len(config) <= _EXTENDED:
            return None
        bridges += 1
        control = acs_control(config)
        if control is not None and control & _REDIRECT:
            redirecting.append(os.path.basename(folder))
    return {"bridges": bridges, "redirecting": redirecting}


def acs_control(config: bytes) -> Optional[int]:
    """The ACS control register in a device's configuration space; None without the capability."""
    offset = _EXTENDED
    seen: Set[int] = set()
    while _EXTENDED <= offset <= len(config) - 8 and offset not in seen:
        seen.add(offset)
        (header,) = struct.unpack_from("<I", config, offset)
        if header & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", config, offset + _ACS_CONTROL)
            return int(control)
        offset = header >> 20
    return None


def gpu_iommu(pci: str = PCI) -> Optional[List[str]]:
    """How the IOMMU treats each GPU: ``DMA`` translates, ``identity`` passes; empty for none."""
    types = []
    for folder in sorted(glob.glob(os.path.join(pci, "*"))):
        vendor = (_text(os.path.join(folder, "vendor")) or "").strip()
        kind = (_text(os.path.join(folder, "class")) or "").strip()
        if vendor == _NVIDIA and kind.startswith(_DISPLAY):
            types.append((_text(os.path.join(folder, "iommu_group", "type")) or "none").strip())
    return types


def room(path: str) -> Facts:
    """Free MiB of the file system that holds ``path``, and whether that is there."""
    existing = os.path.abspath(path)
    while not os.path.exists(existing) and existing != "/":
        existing = os.path.dirname(existing)
    try:
        facts = os.statvfs(existing)
    except OSError:
        return {"path": path, "there": False, "free_mib": None}
    free_mib = int(facts.f_bavail * facts.f_frsize / 1024 / 1024)
    return {"path": path, "there": os.path.exists(path), "free_mib": free_mib}


def _opened(path: str) -> str:
    """``ok``, ``absent``, or why it cannot be opened: rights of the file, or of the cgroup."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return "ok"


def _no_exec(mount_point: str) -> Optional[bool]:
    table = _text("/proc/self/mounts")
    if table is None:
        return None
    options = [line.split()[3] for line in table.splitlines() if line.split()[1] == mount_point]
    return bool(options) and "noexec" in options[-1].split(",")


def _chosen(text: Optional[str]) -> Optional[str]:
    """The word in brackets: ``always [madvise] never``."""
    return text.partition("[")[2].partition("]")[0] if text else None


def _text(path: str) -> Optional[str]:
    data = _bytes(path)
    return None if data is None else data.decode("utf-8", "replace")


def _bytes(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read(_CONFIG_BYTES)
    except OSError:
        return None


def _number(path: str) -> Optional[int]:
    text = (_text(path) or "").strip()
    return int(text) if text.isdigit() else None
