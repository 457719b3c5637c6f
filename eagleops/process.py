"""A process that has to do with a GPU: its facts, and whether a reset may end it.

What may be ended: processes with a GPU's device file open in the target's own PID namespace
and container, and members of the trees that eagleops launched. Everything else is spared,
with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import attrs
import cattrs

_CONVERTER = cattrs.Converter()

# The kernel cuts a process's short name.
_COMM_LENGTH = 15
_MPS = "serves other processes' CUDA work (MPS); stop it by: echo quit | nvidia-cuda-mps-control"

# Who may have a GPU's device file open and is no stale work, by name: what it does.
BYSTANDERS: Mapping[str, str] = {
    "nvidia-persistenced": "keeps the driver initialised; without it clocks and limits are lost",
    "nvidia-powerd": "steers the GPUs' power",
    "nv-fabricmanager": "runs the NVSwitch fabric",
    "nvidia-imex": "runs memory sharing between nodes",
    "nv-hostengine": "is DCGM, which watches the GPUs",
    "dcgmi": "is DCGM, which watches the GPUs",
    "nvidia-cuda-mps-server": _MPS,
    "nvidia-cuda-mps-control": _MPS,
    "nvidia-device-plugin": "hands the GPUs out to Kubernetes pods",
}
DISPLAYS = frozenset(
    {
        "Hyprland",
        "X",
        "Xorg",
        "Xwayland",
        "cinnamon",
        "gdm-x-session",
        "gnome-shell",
        "kwin_wayland",
        "kwin_x11",
        "mutter",
        "plasmashell",
        "sddm",
        "sway",
        "weston",
    }
)
WATCHERS = frozenset(
    {
        "all-smi",
        "btop",
        "gpud",
        "gpustat",
        "netdata",
        "nvidia-settings",
        "nvidia-smi",
        "nvitop",
        "nvtop",
        "telegraf",
        "zabbix_agent2",
        "zabbix_agentd",
    }
)
_EXPORTER = re.compile(r"(^|[-_])exporter\d*$")
# How eagleops.bundle starts its interpreter: NVML holds device files while it is asked.
_OWN_SESSION = re.compile(r" -I -c import sys,zlib;.*'eagleops-[0-9a-f]{16}'")
_INTERPRETER = re.compile(r"(python|pypy)[0-9.]*|perl|node|ruby|(ba|da|z)?sh")


@attrs.frozen
class Process:
    """One process's facts.

    Attributes:
        pid: In the PID namespace of whoever looked.
        start_ticks: When it started, in clock ticks since boot. With the PID it names the
            process for good.
        state: As in /proc: ``R``, ``S``, ``D`` (uninterruptible), ``Z`` (zombie), ...
        uid: None where it could not be read.
        title: Its command line, secrets left out.
        comm: Its short name, which the kernel cuts after 15 characters.
        container: Where its cgroup puts it: a vmid, a name or a short id; None for outside.
        nspid: Its PID in each namespace, from the looker's to its own.
        gpu_devices: Indices of the GPUs whose device file it has open.
        gpu_mib: What it uses by the GPU's UUID, in MiB; None where not told.
        wchan: The kernel function that it waits in, in state ``D``.
        server: The launched server that it belongs to.
    """

    pid: int
    start_ticks: int
    ppid: int = 0
    state: str = ""
    uid: int | None = None
    user: str | None = None
    title: str = ""
    comm: str = ""
    cgroup: str = "/"
    container: str | None = None
    nspid: tuple[int, ...] = ()
    pid_ns: int | None = None
    sid: int = 0
    pgid: int = 0
    gpu_devices: tuple[int, ...] = ()
    device_files: tuple[str, ...] = ()
    gpu_mib: Mapping[str, int | None] = attrs.field(factory=dict)
    wchan: str | None = None
    server: str | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Process:
        """A process from the JSON of the ``snapshot`` and ``drain`` operations."""
        return _CONVERTER.structure(data, cls)

    def to_dict(self) -> dict[str, Any]:
        """The process as JSON."""
        return attrs.asdict(self)

    @property
    def holds_gpu(self) -> bool:
        """Whether it has a GPU's own device file open; the driver's common files hold nothing."""
        return bool(self.gpu_devices)

    @property
    def container_pid(self) -> int | None:
        """Its PID in the PID namespace one below the looker's: a container's, from its host."""
        return self.nspid[1] if len(self.nspid) > 1 else None

    @property
    def names(self) -> frozenset[str]:
        """What it may be called: its short name, its program, and the script that it runs."""
        words = self.title.split()
        program = PurePosixPath(words[0]).name if words else ""
        names = {self.comm, program}
        if _INTERPRETER.fullmatch(program):
            names.update(_script(words[1:]))
        return frozenset(names - {""})

    def is_called(self, name: str) -> bool:
        """Whether ``name`` is one of :attr:`names`; a cut short name counts where it is all."""
        whole = self.names - {self.comm}
        if any(other.startswith(self.comm) for other in whole):
            return name in whole
        return name in self.names or self.comm == name[:_COMM_LENGTH]


def _script(words: list[str]) -> set[str]:
    """The module or script that an interpreter was given."""
    for position, word in enumerate(words):
        if word == "-m":
            return {words[position + 1].partition(".")[0]} if words[position + 1 :] else set()
        if word == "-c":
            return set()
        if not word.startswith("-"):
            return {PurePosixPath(word).name}
    return set()


@attrs.frozen
class Viewpoint:
    """Where a target stands, in terms of what was seen of its processes.

    Attributes:
        uid: Of whoever looked, and would send the signals.
        user: Its name.
        container: The target's container as the processes' cgroups tell it; None where they
            tell none, as inside the container itself.
        depth: How many PID namespaces from the looker's in the target's is, itself counted.
        pid_ns: The inode of the target's PID namespace; None where it is not known.
    """

    uid: int
    user: str = ""
    container: str | None = None
    depth: int = 1
    pid_ns: int | None = None


@attrs.frozen
class Judgement:
    """Whether a process may be ended, and why."""

    process: Process
    kill: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """A row of the ``reset-gpus --json`` document."""
        shown = {name: getattr(self.process, name) for name in ("pid", "title", "user")}
        return {**shown, "container": self.process.container, "reason": self.reason}


def judge(process: Process, viewpoint: Viewpoint) -> Judgement:
    """Whether a reset of the target at ``viewpoint`` may end ``process``."""
    foreign = _foreign(process, viewpoint)
    if process.server is not None and not foreign:
        return Judgement(process, kill=True, reason=f"of server {process.server}, launched here")
    spared = foreign or _harmless(process)
    if spared:
        return Judgement(process, kill=False, reason=spared)
    return Judgement(process, kill=True, reason=_held(process) + _rights(process, viewpoint))


def bystander(process: Process) -> str:
    """What a process that may rightly hold a GPU does there; empty for any other."""
    for name, what in BYSTANDERS.items():
        if process.is_called(name):
            return f"{name} {what}"
    if any(map(process.is_called, DISPLAYS)):
        return f"{process.comm} draws a screen"
    exports = any(_EXPORTER.search(name) for name in process.names)
    if exports or any(map(process.is_called, WATCHERS)):
        return f"{process.comm} only watches the GPUs"
    if _OWN_SESSION.search(process.title):
        return "an eagleops session that looks at the GPUs"
    return ""


def _foreign(process: Process, viewpoint: Viewpoint) -> str:
    if process.container != viewpoint.container:
        if process.container is None:
            return "runs outside of the container"
        return f"belongs to container {process.container}"
    # Above the root of the looker's cgroup namespace: a container that sees its host's PIDs.
    if process.cgroup.startswith("/.."):
        return "runs outside of the container"
    depth = max(len(process.nspid), 1)
    known = process.pid_ns is not None and viewpoint.pid_ns is not None
    if depth != viewpoint.depth or (known and process.pid_ns != viewpoint.pid_ns):
        return "runs in another PID namespace"
    return ""


def _harmless(process: Process) -> str:
    known = bystander(process)
    if known:
        return known
    if process.holds_gpu:
        return ""
    if process.device_files:
        return "has no GPU's own device file open, so it holds no GPU memory"
    if process.gpu_mib:
        return "holds no GPU device file here: the driver's list means another namespace's PID"
    return "holds no GPU"


def _held(process: Process) -> str:
    gpus = ", ".join(map(str, process.gpu_devices))
    told_mib = [mib for mib in process.gpu_mib.values() if mib is not None]
    return f"holds GPU {gpus}" + (f" ({sum(told_mib):,} MiB)" if told_mib else "")


def _rights(process: Process, viewpoint: Viewpoint) -> str:
    if process.uid in {viewpoint.uid, None}:
        return ""
    owner = process.user or process.uid
    if viewpoint.uid == 0:
        return f"; it is {owner}'s"
    return f"; it is {owner}'s, and {viewpoint.user or viewpoint.uid} may lack the right to end it"
