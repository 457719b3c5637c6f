"""The box's stand-in for ``/dev/kmsg``: records in the kernel's form, in a file.

A session on the box reads it in place of the real kernel's log, which knows nothing of
simulated GPUs. Times are those of this machine's own monotonic clock: it begins anew with
each boot.
"""

from __future__ import annotations

import os
import time

from eagleops.sim import alive
from eagleops.sim.gpus import bus_id
from eagleops.sim.layout import Layout, read, write_whole


def begin(layout: Layout) -> None:
    """Begins the log, unless it is there and of this boot."""
    first = f"5,0,0,-;Linux (simulated), boot {alive.boot_id()}\n".encode()
    try:
        begun = read(layout.kernel_log).startswith(first)
    except FileNotFoundError:
        begun = False
    if not begun:
        write_whole(layout.kernel_log, first)


def tell(layout: Layout, message: str) -> None:
    """Writes a record with the time that it is."""
    sequence = read(layout.kernel_log).count(b"\n")
    stamp_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    record = f"4,{sequence},{stamp_us},-;{_escaped(message)}\n".encode("ascii")
    descriptor = os.open(layout.kernel_log, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(descriptor, record)
    finally:
        os.close(descriptor)


def tell_xid(layout: Layout, index: int, xid: int, text: str, pid: int | None = None) -> None:
    """Writes an Xid error of one GPU as the driver does."""
    place = bus_id(index)[4:-2].lower()
    process = "" if pid is None else f"pid={pid}, name={_name(pid)}, "
    tell(layout, f"NVRM: Xid (PCI:{place}): {xid}, {process}{text}")


def _name(pid: int) -> str:
    try:
        return read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()
    except OSError:
        return "<unknown>"


def _escaped(message: str) -> str:
    """As the kernel escapes what is not printable, and the backslash."""
    return "".join(map(_character, map(chr, message.encode())))


def _character(one: str) -> str:
    plain = one.isascii() and one.isprintable() and one != "\\"
    return one if plain else f"\\x{ord(one):02x}"
