"""Numbers that one test process alone uses: ports, addresses, containers' IDs.

Each is a byte of one file, locked as long as the process lives; the kernel lets go of it when the
process dies, whatever kills it. So two workers, or two runs in two checkouts, never meet.
"""

from __future__ import annotations

import fcntl
import functools
import os
import random
import socket
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

# Each kind's first byte, and how many numbers it has.
_PORTS, _ADDRESSES, _CONTAINERS = (0, 1 << 16), (1 << 16, 1 << 14), (1 << 17, 1 << 20)
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_taken: set[int] = set()


def free_port() -> int:
    """A port on which nobody listens, and which nobody is given by chance.

    The kernel gives a client's end, or a listener on port 0, one of its ephemeral ports: a port
    of those that is free now may be somebody's a moment later. This one is below them.
    """
    ephemeral = int(_EPHEMERAL.read_text().split()[0])
    return _free(_PORTS[0], range(max(1025, ephemeral // 2), ephemeral), _is_unused)


def free_address() -> int:
    """A number for :meth:`parts.netns.NetworkNamespace.make`."""
    first, count = _ADDRESSES
    return _free(first, range(count))


def free_vmid() -> int:
    """A container's ID; Proxmox's begin at 100."""
    first, count = _CONTAINERS
    return 100_000_000 + _free(first, range(count))


def _free(first: int, numbers: range, fits: Callable[[int], bool] = lambda _: True) -> int:
    start = random.randrange(len(numbers))
    for number in _round(numbers, start):
        if first + number not in _taken and fits(number) and _locked(first + number):
            _taken.add(first + number)
            return number
    raise AssertionError(f"every number of {numbers} is in use")


def _round(numbers: range, start: int) -> Iterable[int]:
    yield from numbers[start:]
    yield from numbers[:start]


def _locked(byte: int) -> bool:
    try:
        fcntl.lockf(_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except OSError:
        return False
    return True


@functools.cache
def _file() -> int:
    # A record lock goes with the first descriptor of the file that its process closes: it is
    # opened here alone, and never closed.
    path = Path(tempfile.gettempdir(), f"eagleops-tests-{os.getuid()}-numbers")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _is_unused(port: int) -> bool:
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
        except OSError:
            return False
        return True
