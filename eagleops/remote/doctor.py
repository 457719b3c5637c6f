"""Operation ``doctor``: what a machine says of itself that a launch depends on. Changes nothing."""

from __future__ import annotations

import glob
import os
import platform
import pwd
import resource
import time
from typing import Any, Dict, Generator, List, Optional, Sequence

from eagleops.remote import gpu_settings, listeners, nccl_conf, redact
from eagleops.remote.box_facts import box_facts
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.server_record import servers_home

# Where NCCL looks for settings beside the environment: param.cc of NCCL 2.30.
NCCL_CONF = ("/etc/nccl.conf", "~/.nccl.conf")
MOST_BYTES = 64 * 1024
KERNEL_MODULE = "/proc/driver/nvidia/version"
YAMA = "/proc/sys/kernel/yama/ptrace_scope"
CAP_SYS_PTRACE = 19


def doctor(
    context: Context,
    port: Optional[int] = None,
    paths: Sequence[str] = (),
    conf_files: Sequence[str] = (),
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Reads what :mod:`eagleops.workflows.doctor` judges.

    Args:
        context: The operation's surroundings.
        port: A port whose listeners to name.
        paths: Files or folders that should be there.
        conf_files: Files that a profile tells NCCL to read, as ``named_conf``.
    """
    prefix = context.options["device_prefix"]
    yield {"event": "reading"}
    return {
        "time_s": time.time(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "user": _user(),
        "uid": os.getuid(),
        "yama": _number(YAMA),
        "ptrace_capable": bool(_effective_capabilities() >> CAP_SYS_PTRACE & 1),
        "disk": _disk(servers_home(context)),
        "shm": _disk("/dev/shm"),
        "nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "memlock": resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
        "device_files": sorted(glob.glob(glob.escape(prefix) + "*")),
        "kernel_module": _text(KERNEL_MODULE),
        "nccl_conf": [_conf(path) for path in NCCL_CONF],
        "named_conf": [_conf(path) for path in conf_files],
        "port_owners": _owners(port),
        "box": {**box_facts(prefix, paths), "persistence": _persistence(context)},
    }


def _persistence(context: Context) -> List[Optional[str]]:
    try:
        told = gpu_settings.settings(context)
    except Failure:
        return []
    return [gpu.get("persistence") for gpu in told.get("gpus") or ()]


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _text(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return None


def _number(path: str) -> Optional[int]:
    text = _text(path)
    return int(text) if text and text.strip().isdigit() else None


def _effective_capabilities() -> int:
    for line in (_text("/proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _disk(path: str) -> Dict[str, Any]:
    """Free and total MiB of the file system that holds ``path`` or its nearest parent."""
    existing = os.path.abspath(path)
    while not os.path.exists(existing) and existing != "/":
        existing = os.path.dirname(existing)
    try:
        facts = os.statvfs(existing)
    except OSError as error:
        return {"path": existing, "free_mib": None, "total_mib": None, "problem": error.strerror}
    unit = facts.f_frsize / 1024 / 1024
    return {
        "path": existing,
        "free_mib": int(facts.f_bavail * unit),
        "total_mib": int(facts.f_blocks * unit),
        "writable": os.access(existing, os.W_OK),
    }


def _owners(port: Optional[int]) -> List[str]:
    found = [] if port is None else listeners.on_port(port)
    return [listeners.sentence(listeners.describe(listener)) for listener in found]


def _conf(path: str) -> Dict[str, Any]:
    try:
        content = nccl_conf.content_of(os.path.expanduser(path))[:MOST_BYTES]
    except OSError:
        return {"path": path, "lines": None}
    lines = content.decode("utf-8", "replace").splitlines()
    told = [line for line in lines if line.strip() and not line.startswith("#")]
    return {"path": path, "lines": [redact.text(line) for line in told]}
