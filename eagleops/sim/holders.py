"""Who holds how much memory on which GPU, and what is still held of the dead."""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

from eagleops.sim import alive, death, drain, faults
from eagleops.sim.layout import Layout, names, read, remove, write_once, write_whole

# How long a dead holder is remembered once its memory is free.
REMEMBERED_S = 600.0


class Holder(NamedTuple):
    """One process's memory on one GPU.

    Attributes:
        server: PID of the server's main process.
        ports: The word that it left for its death (:func:`eagleops.sim.death.leave_word`).
    """

    pid: int
    start_ticks: int
    boot_id: str
    gpu: int
    mib: int
    server: int
    ports: tuple[int, int] | None

    @property
    def key(self) -> str:
        """The name of its files: a PID alone may come again."""
        return f"{self.pid}-{self.start_ticks}"

    def encode(self) -> bytes:
        """As it stands in its file."""
        near, far = self.ports or ("-", "-")
        return " ".join(map(str, (*self[:-1], near, far))).encode()

    @classmethod
    def decode(cls, data: bytes) -> Holder:
        """Reads what :meth:`encode` wrote."""
        pid, ticks, boot_id, gpu, mib, server, near, far = data.decode().split()
        ports = None if near == "-" else (int(near), int(far))
        return cls(int(pid), int(ticks), boot_id, int(gpu), int(mib), int(server), ports)


class Sighting(NamedTuple):
    """A holder at one moment.

    Attributes:
        died_s: When it died, by :func:`time.monotonic`; None while it lives.
        held_mib: What of its memory is still held.
    """

    holder: Holder
    died_s: float | None
    held_mib: int


class Release(NamedTuple):
    """What truly became of a dead holder's memory; times are :func:`time.monotonic`'s."""

    pid: int
    gpu: int
    mib: int
    died_s: float
    released_s: float


class Grip:
    """This process's hold on one GPU: its device files, and its memory.

    Args:
        layout: The box.
        gpu: Index of the GPU on the box.
        server: PID of the server's main process.
    """

    def __init__(self, layout: Layout, gpu: int, server: int) -> None:
        self._layout = layout
        self._devices = [
            os.open(f"{layout.devices}/{name}", os.O_RDWR | os.O_CLOEXEC)
            for name in ("nvidiactl", "nvidia-uvm", f"nvidia{gpu}")
        ]
        pid = os.getpid()
        ticks = alive.start_ticks(pid) or 0
        self._holder = Holder(pid, ticks, alive.boot_id(), gpu, 0, server, death.leave_word())

    def hold(self, mib: int) -> None:
        """Has ``mib`` of the GPU's memory from now on."""
        holder = self._holder._replace(mib=mib)
        write_whole(f"{self._layout.holders}/{holder.key}", holder.encode())


def sightings(layout: Layout, broken: faults.Faults) -> list[Sighting]:
    """Every holder whose memory is not yet free, and the dead that are remembered."""
    boot_id = alive.boot_id()
    seen = []
    for name in names(layout.holders):
        holder = _read(f"{layout.holders}/{name}")
        if holder is None:
            continue
        if holder.boot_id != boot_id:
            _forget(layout, holder)
            continue
        sighting = _see(layout, holder, broken)
        if sighting.died_s is not None and _is_history(sighting.died_s, sighting.held_mib):
            _forget(layout, holder)
        seen.append(sighting)
    return seen


def releases(layout: Layout, broken: faults.Faults) -> list[Release]:
    """The truth about the dead that are remembered, in the order of their PIDs."""
    return [
        Release(
            seen.holder.pid,
            seen.holder.gpu,
            seen.holder.mib,
            seen.died_s,
            seen.died_s + _stuck_s(seen.holder, broken) + drain.released_s(seen.holder.gpu),
        )
        for seen in sightings(layout, broken)
        if seen.died_s is not None
    ]


def _read(path: str) -> Holder | None:
    try:
        return Holder.decode(read(path))
    except FileNotFoundError:  # forgotten by another process just now
        return None
    except (ValueError, TypeError):  # of another version of this package, or damaged
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return None


def _see(layout: Layout, holder: Holder, broken: faults.Faults) -> Sighting:
    if alive.start_ticks(holder.pid) == holder.start_ticks:
        return Sighting(holder, None, holder.mib)
    died_s = _died_s(layout, holder)
    since_s = time.monotonic() - died_s - _stuck_s(holder, broken)
    return Sighting(holder, died_s, drain.held_mib(holder.mib, holder.gpu, since_s))


def _died_s(layout: Layout, holder: Holder) -> float:
    path = f"{layout.deaths}/{holder.key}"
    try:
        return float(read(path))
    except FileNotFoundError:
        pass
    died_s = death.died_at(holder.ports)
    if died_s is None:
        # Without ports nobody can know, and this is the first look. With ports, the kernel
        # would still know if it had been within its minute.
        died_s = time.monotonic() - (death.TIME_WAIT_S if holder.ports else 0.0)
    return float(write_once(path, repr(died_s).encode()))


def _stuck_s(holder: Holder, broken: faults.Faults) -> float:
    return float(faults.of_gpu(broken, holder.gpu).get("stuck_s", 0.0))


def _is_history(died_s: float, held_mib: int) -> bool:
    return not held_mib and time.monotonic() - died_s > REMEMBERED_S


def _forget(layout: Layout, holder: Holder) -> None:
    remove(f"{layout.holders}/{holder.key}")
    remove(f"{layout.deaths}/{holder.key}")
