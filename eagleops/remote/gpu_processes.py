"""The processes that a plan for the GPUs must know: holders, and launched servers' trees."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from eagleops.remote import device_files, processes, servers
from eagleops.remote.context import Context
from eagleops.remote.gpu_facts import Reading

Facts = Dict[str, Any]


def read_processes(context: Context, reading: Reading) -> Tuple[List[Facts], int]:
    """Facts of every process with a device file open, in a GPU's list, or of a server's tree.

    A PID in a GPU's list may be another namespace's, for older drivers tell the host's PIDs
    in a container too: that it holds nothing here is then what sets it apart.

    Returns:
        The processes by PID, and how many others this user may not look into.
    """
    pattern = device_files.device_pattern(context.options["device_prefix"])
    held = device_files.holders(pattern)
    members = servers.trees(context)
    memory = memory_by_pid(reading)
    index_of = {gpu["minor"]: gpu["index"] for gpu in reading.gpus if gpu["minor"] is not None}
    found = []
    for pid in sorted(set(held.files) | set(members) | set(memory)):
        facts = processes.facts(pid)
        if facts is None:
            continue
        files = held.files.get(pid, [])
        numbers = (device_files.minor_of(pattern, file) for file in files)
        minors = {number for number in numbers if number is not None}
        facts.update(
            device_files=files,
            gpu_devices=sorted(index_of.get(minor, minor) for minor in minors),
            gpu_mib=memory.get(pid, {}),
            server=members.get(pid),
        )
        found.append(facts)
    return found, held.unreadable


def memory_by_pid(reading: Reading) -> Dict[int, Dict[str, Any]]:
    """What each listed process uses on each GPU, in MiB by the GPU's UUID; None: not told."""
    memory: Dict[int, Dict[str, Any]] = {}
    for gpu in reading.gpus:
        for process in gpu["processes"]:
            memory.setdefault(process["pid"], {})[gpu["uuid"] or ""] = process["used_mib"]
    return memory
