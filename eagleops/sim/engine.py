"""What every stand-in engine does, whichever engine it is like: see its functions."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from eagleops.sim.settings import Settings

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when its parent dies, as the engines' workers do."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def take_title(title: str, changed: Sequence[str]) -> None:
    """Takes a title as the engines do, with the library that they use.

    It overwrites this process's argv and as much of its initial environment as lies in one
    piece, up to the first variable that was changed since the start; with SPT_NOENV it
    leaves the environment alone. The engines set some variables again in each worker, which
    is why those survive in /proc/PID/environ while a user's do not.

    Args:
        title: For example ``sglang::scheduler_TP0``.
        changed: Names of the variables that the engine sets again.
    """
    for name in changed:
        os.environ[name] = os.environ[name]
    import setproctitle

    setproctitle.setproctitle(title)


def visible_gpus(count: int) -> tuple[int, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves of ``count``, by their order there."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return tuple(range(count))
    gpus = []
    for word in named.split(","):
        # An index, or a UUID: the box's UUIDs end in the index.
        digits = word.strip().rpartition("-")[2]
        # CUDA takes the list up to the first word that names no device.
        if not digits.isdecimal() or int(digits) >= count:
            break
        gpus.append(int(digits))
    return tuple(gpus)


def say(line: str) -> None:
    """Writes one line to stderr in one piece: many processes share the log."""
    os.write(2, f"{line}\n".encode("utf-8", "surrogateescape"))


def scaled(seconds: float, settings: Settings) -> float:
    """A time of the settings in real time."""
    return seconds / settings.speed
