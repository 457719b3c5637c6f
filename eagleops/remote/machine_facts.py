"""What of a machine decides how fast it is, and does not change while it runs."""

from __future__ import annotations

import glob
import os
import platform
import re
import socket
from typing import Any, Dict, Iterable, List, Optional

from eagleops.remote import command
from eagleops.remote.context import Context
from eagleops.remote.distributions import read_text
from eagleops.remote.failure import Failure

Facts = Dict[str, Any]

LIMIT_S = 10.0
TEXT_BYTES = 64 * 1024
CPU = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"


def facts(context: Context) -> Facts:
    """The machine; None where a fact is not told."""
    cpuinfo = read_text("/proc/cpuinfo", TEXT_BYTES) or ""
    return {
        "hostname": socket.gethostname(),
        "boot_id": _line("/proc/sys/kernel/random/boot_id"),
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "kernel_cmdline": _line("/proc/cmdline"),
        "os": parse_os_release(read_text("/etc/os-release", TEXT_BYTES) or ""),
        "cpu": _field(cpuinfo, "model name"),
        "cpu_count": os.cpu_count(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "memory_mib": parse_meminfo(read_text("/proc/meminfo", TEXT_BYTES) or ""),
        "governors": counted(
            read_text(path, TEXT_BYTES)
            for path in glob.glob(CPU + "/cpu[0-9]*/cpufreq/scaling_governor")
        ),
        "numa": numa_nodes(),
        "numa_balancing": _line("/proc/sys/kernel/numa_balancing"),
        "hugepages": _line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "container": container_kind(),
        "proxmox": proxmox_version(context),
    }


def parse_os_release(text: str) -> Optional[str]:
    """The name in ``/etc/os-release``, for example ``Debian GNU/Linux 12 (bookworm)``."""
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip("\"'")
    return None


def parse_meminfo(text: str) -> Optional[int]:
    """The memory in ``/proc/meminfo``, in MiB."""
    found = re.search(r"^MemTotal:\s+(\d+) kB$", text, re.MULTILINE)
    return int(found.group(1)) // 1024 if found else None


def counted(texts: Iterable[Optional[str]]) -> Dict[str, int]:
    """How often each text stands there: of 64 processors, 63 may be on ``performance``."""
    counts: Dict[str, int] = {}
    for text in texts:
        if text and text.strip():
            counts[text.strip()] = counts.get(text.strip(), 0) + 1
    return counts


def numa_nodes() -> List[Facts]:
    """The NUMA nodes, each with its processors and its memory in MiB."""
    nodes = []
    for folder in glob.glob(NODES + "/node[0-9]*"):
        memory = re.search(
            r"MemTotal:\s+(\d+) kB", read_text(folder + "/meminfo", TEXT_BYTES) or ""
        )
        nodes.append(
            {
                "node": int(os.path.basename(folder)[len("node") :]),
                "cpus": _line(folder + "/cpulist"),
                "memory_mib": int(memory.group(1)) // 1024 if memory else None,
            }
        )
    return sorted(nodes, key=lambda node: int(node["node"]))


def container_kind() -> Optional[str]:
    """``lxc``, ``docker``, ``podman`` and so on; None on a machine of its own.

    systemd and LXC tell it in the first process's environment, which root alone may read;
    systemd leaves it in a file too, Docker and Podman leave an empty one.
    """
    told = _line("/run/systemd/container")
    if told:
        return told
    try:
        with open("/proc/1/environ", "rb") as file:
            for variable in file.read(TEXT_BYTES).split(b"\0"):
                if variable.startswith(b"container="):
                    return variable[len(b"container=") :].decode("utf-8", "replace") or None
    except OSError:
        pass
    for path, kind in (("/.dockerenv", "docker"), ("/run/.containerenv", "podman")):
        if os.path.exists(path):
            return kind
    return None


def proxmox_version(context: Context) -> Optional[str]:
    """Proxmox's own version on a Proxmox host, for example ``pve-manager/8.2.4/...``."""
    program = command.find(context, "pveversion")
    if program is None:
        return None
    try:
        finished = command.run(context, [program], LIMIT_S)
    except Failure:
        return None
    return finished.stdout.strip() or None if finished.exit_status == 0 else None


def _line(path: str) -> Optional[str]:
    text = read_text(path, TEXT_BYTES)
    return text.strip() or None if text is not None else None


def _field(text: str, name: str) -> Optional[str]:
    found = re.search(r"^{}\s*:\s*(.+)$".format(re.escape(name)), text, re.MULTILINE)
    return found.group(1).strip() if found else None
