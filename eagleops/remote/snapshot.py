"""Operation ``snapshot``: the machine, its GPUs, who holds them, and the launched servers."""

from __future__ import annotations

import os
import platform
import socket
from typing import Any, Dict, Generator

from eagleops.remote import process_table, processes
from eagleops.remote import servers as launched
from eagleops.remote.cgroup import parse_cgroup
from eagleops.remote.context import Context
from eagleops.remote.gpu_processes import read_processes
from eagleops.remote.gpus import Gpus
from eagleops.remote.server_record import boot_id
from eagleops.remote.supervisor import now_utc


def snapshot(
    context: Context,
    servers: bool = True,
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """One look at everything that a plan stands on.

    Args:
        context: The operation's surroundings.
        servers: Whether to ask the launched servers for their states too.

    Raises:
        Failure: ``foreign_proc``.
    """
    yield {"event": "reading"}
    processes.require_own_proc()
    with Gpus(context) as gpus:
        reading, source, driver_found = gpus.read(), gpus.source, gpus.driver_found
    found, unreadable = read_processes(context, reading)
    return {
        "machine": dict(machine(), unreadable_processes=unreadable),
        "gpu_source": source,
        "gpu_problem": reading.problem,
        "driver_found": driver_found,
        "driver_version": reading.driver_version,
        "gpus": reading.gpus,
        "processes": found,
        "servers": launched.listing(context) if servers else [],
    }


def machine() -> Dict[str, Any]:
    """Whose eyes these are: the host, its boot, and where this process itself stands."""
    uid = os.geteuid()
    return {
        "hostname": socket.gethostname(),
        "boot_id": boot_id(),
        "time_utc": now_utc(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "user": process_table.user(uid),
        "uid": uid,
        "pid_ns": processes.pid_namespace(os.getpid()),
        "container": parse_cgroup(processes.read(os.getpid(), "cgroup")).container,
        "clock_ticks": os.sysconf("SC_CLK_TCK"),
    }
