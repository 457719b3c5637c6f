"""Numbers of the tests themselves: what one process has, no other is given."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import parts.reserved
from parts.reserved import free_address, free_port, free_vmid

# Many of few, and of this run's own: by chance alone they would meet.
TAKES = f"""
import sys
sys.path.insert(0, {str(Path(parts.reserved.__file__).parents[1])!r})
from parts import reserved
print(*[reserved._free({(1 << 21) + 64 * os.getpid()}, range(40)) for _ in range(10)], flush=True)
sys.stdin.read()
"""


def test_processes_never_share_a_number() -> None:
    """Four that take forty of forty have ten each, and the fifth is told that none is left."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TAKES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    try:
        taken = [int(word) for one in running for word in one.stdout.readline().split()]
        late = subprocess.run(
            [sys.executable, "-c", TAKES], capture_output=True, text=True, input="", check=False
        )
    finally:
        for one in running:
            one.communicate()

    assert sorted(taken) == list(range(40))
    assert "is in use" in late.stderr


def test_what_a_process_had_is_free_when_it_is_over() -> None:
    """However it ended: nothing is left to be cleaned."""
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", TAKES], capture_output=True, text=True, input="", check=True
        )
        assert len(set(done.stdout.split())) == 10


def test_a_process_is_given_each_number_once() -> None:
    """Ports, addresses and containers' IDs."""
    for free in (free_port, free_address, free_vmid):
        assert len({free() for _ in range(20)}) == 20


def test_no_port_is_one_that_the_kernel_gives_away() -> None:
    """A connection's own end would take it."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 < free_port() < low for _ in range(20))
