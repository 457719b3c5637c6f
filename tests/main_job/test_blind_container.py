"""A container that cannot see who holds its GPU: its host is asked, and neighbours are spared.

Two real LXC containers share one pretended GPU. Each has its device file; what a holder has of
the GPU's memory is a lock on a file that both share, so that a stand-in for nvidia-smi knows it
wherever it runs, and names its holders as the kernel does: on the host all of them, in a
container none of another's.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from eagleops.errors import ConnectFailed
from eagleops.inventory import ContainerEntry, HostEntry
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.transport.local import LocalTransport
from eagleops.transport.ssh import SshOptions, SshTransport
from eagleops.workflows.launch import launch
from eagleops.workflows.reset import ResetReport, reset
from eagleops.workflows.stop import stop
from parts.container import Container
from parts.poll import until

PYTHON = "/usr/bin/python3"
HELD_MIB = 4000
POOL = "/pool"
# In place of the driver's name, which containers of other tests may have at the same time.
DEVICES = f"/dev/{secrets.token_hex(4)}-nvidia"
NVIDIA_SMI = f"""\
#!{PYTHON} -S
import fcntl, os, sys
question = sys.argv[1].partition("=")[2].split(",")
pool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "memory")
held = {{}}
for name in os.listdir(pool):
    with open(os.path.join(pool, name)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held[os.fstat(file.fileno()).st_ino] = name
if sys.argv[1].startswith("--query-compute-apps"):
    told = {{"gpu_uuid": "GPU-shared"}}
    told["used_memory"] = told["used_gpu_memory"] = "{HELD_MIB}"
    for line in open("/proc/locks"):
        words = line.split()
        if int(words[5].rpartition(":")[2]) in held and int(words[4]) > 0:
            print(", ".join(dict(told, pid=words[4]).get(field, "[N/A]") for field in question))
else:
    told = {{"index": "0", "uuid": "GPU-shared", "name": "stand-in", "memory.total": "97887"}}
    told["memory.used"] = str({HELD_MIB} * len(held))
    print(", ".join(told.get(field, "[N/A]") for field in question))
"""
HOLD = (
    f"import fcntl, sys, time; device = open('{DEVICES}0'); memory = open(sys.argv[1], 'w');"
    "fcntl.flock(memory, fcntl.LOCK_EX); print('ready', flush=True); time.sleep(600)"
)
OPTIONS = {"nvml": False, "device_prefix": DEVICES}
# The container's session is an ordinary user's: root's descriptors are none of its business.
ORDINARY = f'#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups {PYTHON} "$@"\n'


@attrs.frozen
class Pair:
    """Our container, its neighbour, and their host."""

    ours: Container
    neighbour: Container
    pve: Machine
    llm: Machine
    pool: Path


@pytest.fixture
def pair(tmp_path: Path, make_container: Callable[..., Container]) -> Iterator[Pair]:
    """Two containers with one GPU between them."""
    pool = tmp_path / "pool"
    (pool / "memory").mkdir(parents=True)
    for folder in (tmp_path, pool, pool / "memory"):
        folder.chmod(0o777)
    for name, text in (("nvidia-smi", NVIDIA_SMI), ("ordinary", ORDINARY)):
        (pool / name).write_text(text)
        (pool / name).chmod(0o755)
    ours, neighbour = (make_container(mounts={str(pool): POOL}) for _ in range(2))
    for container in (ours, neighbour):
        container.run(["/usr/bin/touch", f"{DEVICES}0"])
        (pool / "memory" / str(container.vmid)).touch(mode=0o666)
        (pool / "memory" / str(container.vmid)).chmod(0o666)
    host = LocalTransport(where="pve")
    path = os.environ["PATH"]
    pve = Machine(
        "pve",
        HostEntry(name="pve", transport="local", python=PYTHON),
        host,
        {**OPTIONS, "path": f"{pool}:{path}", "state_home": str(tmp_path / "state")},
    )
    llm = Machine(
        "llm",
        ContainerEntry(name="llm", on="pve", vmid=ours.vmid, python=f"{POOL}/ordinary"),
        ours.inside(host),
        {**OPTIONS, "path": f"{POOL}:{path}", "state_home": "/tmp/state"},
        outer=pve,
    )
    yield Pair(ours, neighbour, pve, llm, pool)
    llm.close()
    pve.close()


@pytest.fixture
def hold(pair: Pair) -> Iterator[Callable[[Container], subprocess.Popen[bytes]]]:
    """``hold(container)`` starts root's holder of the GPU in there."""
    started: list[subprocess.Popen[bytes]] = []

    def start(container: Container) -> subprocess.Popen[bytes]:
        name = ("-P", str(container.containers), "-n", str(container.vmid))
        memory = f"{POOL}/memory/{container.vmid}"
        argv = ["lxc-attach", *name, "--clear-env", "--", PYTHON, "-c", HOLD, memory]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for container in (pair.ours, pair.neighbour):
        container.stop()
    for process in started:
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def rows(report: ResetReport, which: str) -> list[tuple[str | None, str]]:
    """Container and reason of each process killed or spared."""
    return [(j.process.container, j.reason) for j in getattr(report, which)]


def test_the_host_is_asked_and_only_our_own_is_killed(pair, hold):
    """Its holder dies by the host's PID; the neighbour lives on, and its memory counts as idle."""
    mine, other = hold(pair.ours), hold(pair.neighbour)
    assert not [p for p in pair.llm.call("snapshot")["processes"] if p["gpu_devices"]]

    planned = reset(pair.llm, dry_run=True)
    done = reset(pair.llm, grace_s=1.0, timeout_s=60)

    killed = [(str(pair.ours.vmid), f"holds GPU 0 ({HELD_MIB:,} MiB)")]
    spared = [(str(pair.neighbour.vmid), f"belongs to container {pair.neighbour.vmid}")]
    assert rows(planned, "killed") == rows(done, "killed") == killed
    assert rows(planned, "spared") == rows(done, "spared") == spared
    assert [j.process.pid for j in planned.killed] == [j.process.pid for j in done.killed]
    assert "so pve was asked: PIDs are the host's" in done.notes[0]
    assert done.ok
    assert [gpu.used_mib for gpu in done.drain.gpus] == [HELD_MIB]
    until(lambda: mine.poll() is not None)
    assert other.poll() is None


def test_a_neighbours_memory_alone_is_no_reason_to_wait(pair, hold):
    """Nothing of ours holds the GPU: nothing is killed, and it counts as drained at once."""
    other = hold(pair.neighbour)

    done = reset(pair.llm, timeout_s=60)

    assert done.killed == ()
    assert rows(done, "spared") == [
        (str(pair.neighbour.vmid), f"belongs to container {pair.neighbour.vmid}")
    ]
    assert done.ok
    assert other.poll() is None


def test_a_host_that_cannot_be_asked_is_said_to_be_so(pair, hold):
    """The container answers, its host does not: nothing is killed, and the host is named."""
    mine = hold(pair.ours)
    entry = HostEntry(name="pve", address="root@127.0.0.1:1")
    down = SshTransport(entry.address, options=SshOptions(config_file="/dev/null"))
    llm = attrs.evolve(pair.llm, outer=Machine("pve", entry, down))

    with pytest.raises(ConnectFailed) as refused:
        reset(llm, timeout_s=5)

    llm.close()
    assert "127.0.0.1:1" in str(refused.value)
    assert mine.poll() is None


def test_a_server_is_launched_and_stopped_beside_a_neighbour(pair, hold):
    """The whole memory of the GPU is not ours: what the neighbour keeps is not waited for."""
    other = hold(pair.neighbour)
    memory = f"{POOL}/memory/{pair.ours.vmid}"
    profile = Profile(name="mine", engine="command", command=(PYTHON, "-c", HOLD, memory))

    launched = launch(pair.llm, profile, drain_timeout_s=60, verify_after=False)
    assert launched.ok
    stopped = stop(pair.llm, "mine", drain_timeout_s=60)

    assert stopped.ok
    assert [gpu.used_mib for gpu in stopped.drain.gpus] == [HELD_MIB]
    assert other.poll() is None
