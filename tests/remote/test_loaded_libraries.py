"""The NCCL that counts is the one that is in the processes' memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.context import Context
from eagleops.remote.loaded_libraries import CHUNK_BYTES, Mapped, nccl_version, parse_maps

VERSION = b"\0NCCL version 2.28.9+cuda13.0\0"

# Maps the files that it is given as the dynamic linker would, and forks a worker.
HOLDER = """
import mmap, os, sys
held = []
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        held.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
sys.stdin.read()
os.waitpid(child, 0)
"""


@contextmanager
def holding(*files: Path) -> Iterator[tuple[int, int]]:
    """A process with a child; both have the files in their memory."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        child = int(process.stdout.readline())
        yield process.pid, child
        process.stdin.close()


def test_the_loaded_nccl_is_read_from_its_file(tmp_path: Path, look) -> None:
    """Its version stands in its own bytes: the name says 2 alone. The worker has it too."""
    nccl = tmp_path / "libnccl.so.2"
    nccl.write_bytes(bytes(100_000) + VERSION + bytes(100_000))
    plugin = tmp_path / "libnccl-net.so"
    plugin.write_bytes(b"x")
    cudart = tmp_path / "libcudart.so.12.8.90"
    cudart.write_bytes(b"x")
    with holding(nccl, plugin, cudart) as (parent, child):
        found = look(pid=parent, packages=[])

    assert found["libraries"] == [
        {
            "name": "cudart",
            "path": str(cudart),
            "version": "12.8.90",
            "replaced": False,
            "pids": [parent, child],
        },
        {
            "name": "nccl",
            "path": str(nccl),
            "version": "2.28.9+cuda13.0",
            "replaced": False,
            "pids": [parent, child],
        },
        {
            "name": "nccl-net",
            "path": str(plugin),
            "version": None,
            "replaced": False,
            "pids": [parent, child],
        },
    ]
    assert found["unreadable"] == []


def test_a_library_that_was_replaced_since_is_told(tmp_path: Path, look) -> None:
    """An upgrade under a running server: the file's version is not the process's."""
    upgraded, deleted = tmp_path / "libnccl.so.2", tmp_path / "libnccl.so.2.19.3"
    for file in (upgraded, deleted):
        file.write_bytes(VERSION)
    with holding(upgraded, deleted) as (parent, _):
        (tmp_path / "new").write_bytes(VERSION.replace(b"2.28.9", b"2.30.1"))
        (tmp_path / "new").rename(upgraded)
        deleted.unlink()
        libraries = look(pid=parent, packages=[])["libraries"]

    assert [(one["path"], one["version"], one["replaced"]) for one in libraries] == [
        (str(upgraded), "2", True),
        (str(deleted), "2.19.3", True),
    ]


def test_a_process_that_is_gone_has_no_libraries(look) -> None:
    """Its PID is named as unreadable; nothing is guessed."""
    gone = subprocess.Popen(["true"])
    gone.wait()

    found = look(pid=gone.pid, packages=[])

    assert (found["libraries"], found["unreadable"]) == ([], [gone.pid])


def test_a_version_across_two_pieces_is_found(tmp_path: Path) -> None:
    """The file is read piece by piece; what stands over an edge is not lost."""
    file = tmp_path / "libnccl.so.2"
    for before in range(CHUNK_BYTES - len(VERSION), CHUNK_BYTES + 1, 7):
        file.write_bytes(bytes(before) + VERSION)
        assert nccl_version(Context({}), str(file)) == "2.28.9+cuda13.0"


def test_a_library_without_its_version_has_none(tmp_path: Path) -> None:
    """Words like the version's, without one, are no version."""
    file = tmp_path / "libnccl.so.2"
    file.write_bytes(b"NCCL version mismatch\0NCCL version %s\0" + bytes(100))

    assert nccl_version(Context({}), str(file)) is None


def test_maps_are_read_as_the_kernel_writes_them() -> None:
    """Each file once; names with blanks, a line break or the word for deleted."""
    text = """\
7f00-7f01 r--p 00000000 fe:01 42                         /lib/lib nccl.so.2
7f01-7f02 r-xp 00001000 fe:01 42                         /lib/lib nccl.so.2
7f03-7f04 r-xp 00000000 fe:01 43                         /tmp/a\\012b (deleted)
7f05-7f06 rw-p 00000000 00:00 0                          [heap]
7f07-7f08 rw-p 00000000 00:00 0
nonsense
"""

    assert parse_maps(text) == [
        Mapped("/lib/lib nccl.so.2", "fe:01", 42, deleted=False),
        Mapped("/tmp/a\nb", "fe:01", 43, deleted=True),
    ]


@given(st.text())
def test_no_maps_break_the_reading(text: str) -> None:
    """Whatever stands there, it is read."""
    assert all(mapped.path for mapped in parse_maps(text))
