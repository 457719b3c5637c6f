"""When a process died, as the kernel remembers it.

GPU memory is released a little after the death of the process that held it, so a simulated
GPU must know when that was: exactly, though nobody may have been looking, and without a
process of its own that looks (it would stand among the server's processes, and be killed
with them). The kernel keeps such a time for TCP: a connection that was closed stays in
TIME_WAIT for 60 s, and /proc/net/tcp tells how many of them are left. So each holder of GPU
memory keeps both ends of a loopback connection open. Whatever ends the process closes both,
and the time of that is written down, to the tick (10 ms), by the kernel itself.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from eagleops.sim.layout import read

if TYPE_CHECKING:
    import socket

TIME_WAIT_S = 60.0
_TIME_WAIT_STATE = "06"
# The clock is read beside the table: where another program came between, both are read again.
_BESIDE_S = 0.005
_READINGS = 20

Ports = tuple[int, int]
_kept: list[socket.socket] = []


def leave_word() -> Ports | None:
    """Opens this process's connection to itself; it closes when the process dies.

    Returns:
        The ports of its two ends, or None where there is no loopback.
    """
    import socket

    try:
        with socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
            near = socket.create_connection(listener.getsockname())
            far, _ = listener.accept()
    except OSError:
        return None
    _kept.extend((near, far))
    return near.getsockname()[1], far.getsockname()[1]


def closed_since(table: str, now_s: float) -> dict[frozenset[int], float]:
    """When each loopback connection in TIME_WAIT was closed.

    Args:
        table: /proc/net/tcp.
        now_s: The clock to tell it by, at the time when the table was read.

    Returns:
        The time by the ports of both ends.
    """
    closed = {}
    for line in table.splitlines()[1:]:
        cells = line.split()
        if cells[3] == _TIME_WAIT_STATE:
            ports = frozenset(int(end.rpartition(":")[2], 16) for end in cells[1:3])
            left_s = int(cells[5].rpartition(":")[2], 16) / os.sysconf("SC_CLK_TCK")
            closed[ports] = now_s - (TIME_WAIT_S - left_s)
    return closed


def died_at(ports: Ports | None) -> float | None:
    """When the process that left word by ``ports`` died, by :func:`time.monotonic`.

    None where the kernel does not remember: it died more than 60 s ago, or just now on a
    machine that keeps no such table.
    """
    try:
        table, now_s = _table_and_time()
    except OSError:
        return None
    return closed_since(table, now_s).get(frozenset(ports or ()))


def _table_and_time() -> tuple[str, float]:
    """/proc/net/tcp, and the clock when it was read: the closest of some readings."""
    closest_s, told = float("inf"), ("", 0.0)
    for _ in range(_READINGS):
        before_s = time.monotonic()
        table = read("/proc/net/tcp").decode("ascii")
        now_s = time.monotonic()
        if now_s - before_s < closest_s:
            closest_s, told = now_s - before_s, (table, now_s)
        if closest_s < _BESIDE_S:
            break
    return told
