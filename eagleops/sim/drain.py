"""How a GPU's memory goes free once the process that held it has died.

Measured on two H200s after SIGKILL: all of it stayed held for about 0.1 s, then it fell GPU
by GPU (387 MiB on one while 21,959 on the other), and read 0 on both 0.32 to 0.34 s after
the kill. A process can be gone from /proc before its memory is.
"""

from __future__ import annotations

WHOLE_S = 0.10
FALLEN_S = 0.28
REMNANT_MIB = 387
RELEASED_FIRST_S = 0.32
RELEASED_LAST_S = 0.34

# Which GPU falls first is no matter of its index.
_TURNS = (3, 0, 5, 1, 7, 4, 2, 6)


def _turn(gpu: int) -> float:
    return _TURNS[gpu % len(_TURNS)] / (len(_TURNS) - 1)


def fallen_s(gpu: int) -> float:
    """Seconds from a death until only a remnant is held on that GPU."""
    return WHOLE_S + (FALLEN_S - WHOLE_S) * _turn(gpu)


def released_s(gpu: int) -> float:
    """Seconds from a death until nothing is held on that GPU."""
    return RELEASED_FIRST_S + (RELEASED_LAST_S - RELEASED_FIRST_S) * _turn(gpu)


def held_mib(mib: int, gpu: int, since_death_s: float) -> int:
    """What is still held of ``mib`` on that GPU, that long after the holder's death."""
    if since_death_s >= released_s(gpu):
        return 0
    return mib if since_death_s < fallen_s(gpu) else min(mib, REMNANT_MIB)
