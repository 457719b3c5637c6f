"""The kinds of checks: what each reads, its limit, and why that is the default.

The one place where a check is described: hosts.yaml's keys, the reference's table, JUnit's
names and Prometheus' labels are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

Of = Literal["host", "profile", "command"]


@attrs.frozen
class CheckKind:
    """One kind of check.

    Attributes:
        id: Its stable name.
        reads: What it looks at, in a sentence.
        severity: What a fault is unless a suite says otherwise.
        limit: In ``unit``; None for a check without a figure.
        why: Why that is the default.
        lasting: Whether a fault holds until a night passes without it. Otherwise it is news of
            one night: it is told once, and its absence in the next night is none.
        of: Whether there is one for a host, for each profile, or for each command.
    """

    id: str
    reads: str
    severity: Literal["warn", "fail"]
    limit: float | None = None
    unit: str = ""
    why: str = ""
    lasting: bool = True
    of: Of = "host"


_ALL = (
    CheckKind("reach", "Whether the machine can be reached and its python3 answers.", "fail"),
    CheckKind(
        "host-key",
        "Whether the SSH host key is the one on record.",
        "fail",
        why="A changed key is a reinstalled machine, or somebody in between.",
    ),
    CheckKind(
        "doctor",
        "Each check of `doctor`, under its own name: `doctor:ptrace`.",
        "fail",
        why="A fault is as severe as doctor finds it; `warn` makes failures warnings.",
    ),
    CheckKind(
        "xid",
        "Xid errors in the kernel log since the last night.",
        "fail",
        lasting=False,
        why="An Xid of the hardware or the driver (48, 63, 64, 74, 79, 92, 94, 95, 119, ...) is a "
        "fault; one that a program causes by itself (13, 31, 43, 45) is a warning.",
    ),
    CheckKind(
        "ecc",
        "Uncorrected ECC errors since the driver was loaded.",
        "fail",
        0,
        "errors",
        "One of them has ended a process or spoiled its numbers.",
    ),
    CheckKind(
        "ecc-corrected",
        "Corrected ECC errors that were counted since the last night.",
        "warn",
        100,
        "errors",
        "Single ones are cosmic rays; hundreds a night come from a cell or a bus that is failing.",
        lasting=False,
    ),
    CheckKind(
        "rows",
        "Memory rows that are to be remapped or could not be, retired pages that wait.",
        "fail",
        0,
        "rows",
        "A pending remapping wants a reset of the GPU; a failed one, another GPU.",
    ),
    CheckKind(
        "pcie",
        "The width and, under load, the generation of each GPU's PCIe link.",
        "fail",
        why="Half the lanes are half the bandwidth of every all-reduce. An idle link drops to a "
        "lower generation to save power: that is no fault.",
    ),
    CheckKind(
        "idle-throttling",
        "Slowdowns by heat or power brake of a GPU at which nothing works.",
        "fail",
        why="An idle GPU that is too hot has no air, or a broken sensor.",
    ),
    CheckKind(
        "temperature",
        "The temperature of an idle GPU.",
        "warn",
        60,
        "°C",
        "Idle GPUs in a rack stand at 25 to 45 °C; above 60 a fan or the room has failed.",
    ),
    CheckKind(
        "fan",
        "Fans that are told to turn and do not, or cannot be read.",
        "fail",
        95,
        "%",
        "A fan at its limit while nothing works cools against something. Passive cards have none.",
    ),
    CheckKind(
        "power",
        "The power an idle GPU draws, and its power limit against the default.",
        "warn",
        150,
        "W",
        "An idle H100 or H200 draws 70 to 140 W, a consumer card 10 to 40.",
    ),
    CheckKind(
        "stale",
        "Processes that hold a GPU and belong to nothing that lives.",
        "warn",
        0,
        "processes",
        "`reset-gpus` ends them; until then their memory is lost to everybody.",
    ),
    CheckKind(
        "idle-memory",
        "GPU memory in use above the host's `idle_mib` that no process holds.",
        "fail",
        0,
        "MiB",
        "Memory without a holder is a process in another container, or a leak of the driver.",
    ),
    CheckKind(
        "disk",
        "Free room where servers keep their logs.",
        "warn",
        10240,
        "MiB",
        "A night of NCCL logs and server logs stays far below; a full disk ends a launch.",
    ),
    CheckKind(
        "driver",
        "The NVIDIA driver, CUDA and firmware against the last night.",
        "warn",
        lasting=False,
        why="A new driver is the likeliest reason for another speed.",
    ),
    CheckKind(
        "packages",
        "Python packages and their versions against the last night.",
        "warn",
        lasting=False,
        why="Nobody upgrades torch at night on purpose.",
    ),
    CheckKind(
        "machine",
        "Kernel, processors, memory and GPU settings against the last night.",
        "warn",
        lasting=False,
        why="A lost DIMM or a changed power limit shows here first.",
    ),
    CheckKind(
        "engine-files",
        "Files of the engine that are not as its wheel or commit has them.",
        "warn",
        0,
        "files",
        "A patched engine measures another program than the one named.",
    ),
    CheckKind(
        "nccl-conf",
        "The nccl.conf files against the last night.",
        "warn",
        lasting=False,
        why="NCCL reads them beside the environment, and nobody sees that it does.",
    ),
    CheckKind(
        "busy",
        "Who uses the GPUs, and whether another night is at the host.",
        "warn",
        why="What needs idle GPUs is skipped then, with the holders named; nobody is disturbed.",
    ),
    CheckKind("launch", "Whether the profile's server gets ready.", "fail", of="profile"),
    CheckKind(
        "environment",
        "The three witnesses on the environment of its workers.",
        "fail",
        of="profile",
    ),
    CheckKind(
        "throttling",
        "Slowdowns of a GPU while the profile was measured.",
        "fail",
        1,
        "%",
        "The share of the measurement's time. Such a night's speed says nothing of the software, "
        "and is left out of its history.",
        of="profile",
    ),
    CheckKind(
        "speed",
        "Decode speed against the profile's own history.",
        "fail",
        3,
        "%",
        "The smallest change that counts. A figure outside the band of its history is a warning; "
        "a change of level that nights confirm is as severe as set here.",
        of="profile",
    ),
    CheckKind(
        "accept-length",
        "Tokens a verify cycle against the profile's own history.",
        "fail",
        3,
        "%",
        "As `speed`. It moves with the model, the drafter and the prompts, not with heat.",
        of="profile",
    ),
    CheckKind(
        "pin",
        "Decode speed against the pinned run.",
        "fail",
        5,
        "%",
        "How far below the run it may fall: twice what restarts of a good box differ by.",
        of="profile",
    ),
    CheckKind(
        "restore",
        "Whether the server that ran before the night runs again.",
        "fail",
        why="Only with `restore: true`: somebody counts on it in the morning.",
    ),
    CheckKind("command", "A command of your own, and what you expect of it.", "fail", of="command"),
)

DOCTOR_KIND = "doctor"
# The checks of `doctor`, which a suite can rule one by one: `doctor:port: off`.
DOCTOR = (
    "way-in",
    "python3",
    "container-host",
    "gpus",
    "driver",
    "ptrace",
    "disk",
    "shm",
    "nccl-conf",
    "clock",
    "port",
    "persistence",
    "p2p",
    "ulimits",
    "numa",
    "hugepages",
    "tmp",
    "device-files",
    "model",
)

KINDS: Mapping[str, CheckKind] = {kind.id: kind for kind in _ALL}
