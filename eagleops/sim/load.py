"""How busy a server is, for whoever reads the GPUs: heat comes and goes slowly.

A server writes its file when it begins and when it ends decoding. Whoever reads computes
from that how warm its GPUs are by now: no process has to follow the temperature.
"""

from __future__ import annotations

import math
import os
import time
from typing import NamedTuple

from eagleops.sim import alive
from eagleops.sim.layout import Layout, names, read, remove, write_whole

HEATING_S = 12.0


class Load(NamedTuple):
    """One server's load since its last change.

    Attributes:
        gpus: Indices of the GPUs that carry it.
        busy: Whether tokens are being decoded.
        since_s: When that began, by :func:`time.monotonic`.
        heat: How warm the GPUs were then: 0 as idle, 1 as after a long time of decoding.
    """

    pid: int
    start_ticks: int
    boot_id: str
    gpus: tuple[int, ...]
    busy: bool
    since_s: float
    heat: float

    def encode(self) -> bytes:
        """As it stands in its file."""
        gpus = ",".join(map(str, self.gpus))
        return (
            f"{self.pid} {self.start_ticks} {self.boot_id} {gpus} {self.busy:d} {self.since_s!r} "
            f"{self.heat!r}"
        ).encode()

    @classmethod
    def decode(cls, data: bytes) -> Load:
        """Reads what :meth:`encode` wrote."""
        pid, ticks, boot_id, gpus, busy, since_s, heat = data.decode().split()
        indices = tuple(map(int, gpus.split(",")))
        return cls(int(pid), int(ticks), boot_id, indices, busy == "1", float(since_s), float(heat))

    def heat_at(self, now_s: float) -> float:
        """How warm the GPUs are: they near their goal by 63 % each 12 s."""
        goal = 1.0 if self.busy else 0.0
        return goal + (self.heat - goal) * math.exp(-(now_s - self.since_s) / HEATING_S)


class Meter:
    """Keeps one server's load on file. Requests come and go on several threads."""

    def __init__(self, layout: Layout, gpus: tuple[int, ...]) -> None:
        import threading

        self._layout = layout
        self._lock = threading.Lock()
        self._requests = 0
        ticks = alive.start_ticks(os.getpid()) or 0
        self._load = Load(
            os.getpid(), ticks, alive.boot_id(), gpus, busy=False, since_s=time.monotonic(), heat=0
        )

    def __enter__(self) -> None:
        self._count(+1)

    def __exit__(self, *_: object) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._requests += change
            busy = self._requests > 0
            if busy == self._load.busy:
                return
            now_s = time.monotonic()
            heat = self._load.heat_at(now_s)
            self._load = self._load._replace(busy=busy, since_s=now_s, heat=heat)
            name = f"{self._load.pid}-{self._load.start_ticks}"
            write_whole(f"{self._layout.loads}/{name}", self._load.encode())


def loads(layout: Layout) -> list[Load]:
    """The loads of the servers that live; the files of the dead are removed."""
    boot_id = alive.boot_id()
    found = []
    for name in names(layout.loads):
        path = f"{layout.loads}/{name}"
        try:
            load = Load.decode(read(path))
        except FileNotFoundError:  # removed by another reader just now
            continue
        if load.boot_id == boot_id and alive.start_ticks(load.pid) == load.start_ticks:
            found.append(load)
        else:
            remove(path)
    return found
