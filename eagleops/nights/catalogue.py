"""The kinds of checks: what each reads, its limit, and why that is the default.

The one place where a check is described: hosts.yaml's keys, the reference's table, JUnit's
names and Prometheus' labels are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from eagleops.nights.kind import CheckKind

__all__ = ["DOCTOR", "DOCTOR_KIND", "KINDS", "CheckKind"]

_ALL = (
    CheckKind(
        "reach",
        "Whether the machine can be reached and its python3 answers.",
        "fail",
        why="A machine that is gone is the one thing that must not look like a quiet night.",
    ),
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
        why="A fault is as severe as doctor finds it; `warn` makes failures warnings. One alone is "
        "ruled by its name: `doctor:port: off`.",
    ),
    CheckKind(
        "xid",
        "Xid errors in the kernel log since the last night.",
        "fail",
        lasting=False,
        why="One of the hardware or the driver (48, 63, 64, 74, 79, 92, 94, 95, 119, ...) is as "
        "severe as set here. One that a program can cause (13, 31, 43, ...) is a warning; 45, "
        "which follows whatever is killed, is none.",
    ),
    CheckKind(
        "ecc",
        "Uncorrected ECC errors since the driver was loaded, and a GPU that asks for a reset.",
        "fail",
        0,
        "errors",
        "Each ends the process that met it; where the GPU cannot contain it, all that are there.",
    ),
    CheckKind(
        "ecc-corrected",
        "Corrected ECC errors that were counted since the last night.",
        "warn",
        1000,
        "errors",
        "They do no harm, and the driver remaps a row that errs again and again; so many in a "
        "night are worth a look before. Xid 92 is its own word for too many.",
        lasting=False,
    ),
    CheckKind(
        "rows",
        "Memory rows that are to be remapped or could not be, retired pages that wait.",
        "fail",
        0,
        "rows",
        "A pending remapping takes effect when the GPU is reset. A failed one means that its bank "
        "has no spare row left: NVIDIA's reason to replace the GPU.",
    ),
    CheckKind(
        "pcie",
        "The width and, under load, the generation of each GPU's PCIe link; GPUs that are gone.",
        "fail",
        why="Half the lanes are half the bandwidth to the host, and without NVLink half that of "
        "every all-reduce. An idle link may drop to a lower generation to save power: no fault.",
    ),
    CheckKind(
        "idle-throttling",
        "Slowdowns by heat or power brake of a GPU at which nothing works.",
        "fail",
        why="An idle GPU that is too hot has no air, or a broken sensor. The power brake is pulled "
        "by the machine's power supply, and at least halves the clocks.",
    ),
    CheckKind(
        "temperature",
        "The temperature of an idle GPU.",
        "warn",
        60,
        "°C",
        "An idle GPU in a rack stands at 25 to 45 °C, a card that rests its fans at up to 55. Above"
        " that, a fan or the room has failed.",
    ),
    CheckKind(
        "fan",
        "Fans that stand still on a warm GPU, race on one at rest, or cannot be read.",
        "fail",
        95,
        "%",
        "A fan at its limit while nothing works cools against something. At 0 % a cool card may "
        "rest its fans; passive cards have none.",
    ),
    CheckKind(
        "power",
        "The power an idle GPU draws, and its power limit against the default.",
        "warn",
        200,
        "W",
        "An H200 draws 80 W with nothing on it and 130 W with a model that waits, a B200 up to "
        "196 W, a consumer card 10 to 50: above, something works that is not seen here. Lower it "
        "for smaller cards.",
    ),
    CheckKind(
        "stale",
        "Processes that hold a GPU and belong to nothing that lives.",
        "warn",
        0,
        "processes",
        "Nobody will end them: `reset-gpus` does. Until then their memory is lost to everybody.",
    ),
    CheckKind(
        "idle-memory",
        "GPU memory in use above the host's `idle_mib` that no process holds.",
        "fail",
        0,
        "MiB",
        "Memory without a holder belongs to a process in another container, or the driver leaked "
        "it: a launch would find less than the profile counts on.",
    ),
    CheckKind(
        "disk",
        "Free room where servers keep their logs.",
        "warn",
        10240,
        "MiB",
        "A night of server and NCCL logs stays far below; a full disk ends a launch. Below 1,024 "
        "MiB doctor fails.",
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
    CheckKind(
        "launch",
        "Whether the profile's server gets ready.",
        "fail",
        why="What does not start at night does not start in the morning.",
        of="profile",
    ),
    CheckKind(
        "environment",
        "The three witnesses on the environment of its workers.",
        "fail",
        why="A worker without its variables is fast or slow for another reason than the profile "
        "says. Blind witnesses are no failure: nothing is known then.",
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
        "How far below the run it may fall: more than restarts of a good box differ by. It says at "
        "once what `speed` needs nights to be sure of.",
        of="profile",
    ),
    CheckKind(
        "restore",
        "Whether the server that ran before the night runs again.",
        "fail",
        why="Only with `restore: true`: somebody counts on it in the morning.",
    ),
    CheckKind(
        "command",
        "A command of your own, and what you expect of it.",
        "fail",
        why="Exit status 0, and what `stdout`, `lowest` and `highest` ask; a command may have its "
        "own `severity`.",
        of="command",
    ),
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
