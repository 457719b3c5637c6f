"""What a killed test run leaves on the machine goes with the next one, and nothing else does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from parts import leftovers, needs
from parts.poll import until

RUN = """
import sys
from pathlib import Path
from parts import leftovers
from parts.container import Container
from parts.netns import NetworkNamespace
from parts.reserved import free_address, free_vmid

leftovers.CLAIMS = Path(sys.argv[2])
container = Container.make(Path(sys.argv[1]), free_vmid())
container.start()
namespace = NetworkNamespace.make(free_address())
print(container.vmid, namespace.name, flush=True)
sys.stdin.read()
container.stop()
namespace.remove()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a run that has made a container and a network namespace, and waits."""
    needs.root("a container")
    needs.program("lxc-start", "lxc")
    monkeypatch.setattr(leftovers, "CLAIMS", tmp_path / "claims")
    parts = str(Path(__file__).resolve().parents[1])
    started: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, folder, leftovers.CLAIMS],
            env={**os.environ, "PYTHONPATH": parts},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.communicate()
    leftovers.remove_leftovers()


def made_by(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The numbers of its container and the name of its namespace, once it has them."""
    vmid, name = process.stdout.readline().split()
    return vmid, name


def there(vmid: str, name: str) -> tuple[bool, bool]:
    """Whether there are cgroups of that container, and whether the namespace is there."""
    cgroups = [*Path("/sys/fs/cgroup").glob(f"**/lxc/{vmid}")]
    return bool(cgroups), Path("/run/netns", name).exists()


def test_what_a_killed_run_leaves_is_removed_by_the_next(run) -> None:
    """Its container's cgroups and its namespace; those of a run that goes on are left alone."""
    killed, living = run(), run()
    left, kept = made_by(killed), made_by(living)

    killed.kill()
    killed.wait()
    assert there(*left) == (True, True)
    names = [f"container:{left[0]}", f"netns:{left[1]}"]
    removed: list[str] = []
    until(lambda: removed.extend(leftovers.remove_leftovers()) or len(removed) == len(names))

    assert (sorted(removed), there(*left), there(*kept)) == (names, (False, False), (True, True))
    living.communicate()
    assert there(*kept) == (False, False)
    assert [*leftovers.CLAIMS.iterdir()] == []
