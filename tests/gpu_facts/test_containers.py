"""One LXC container, seen from inside and from its host: who holds, who is killed."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from eagleops.session import Session
from eagleops.snapshot import Snapshot, container_processes, plan_reset
from eagleops.transport.local import LocalTransport
from parts.container import Container

PYTHON = "/usr/bin/python3"
# In place of the driver's names, which containers of other tests may have at the same time.
DEVICES = f"/dev/{secrets.token_hex(4)}-nvidia"
HOLD = f"import time; f = open('{DEVICES}0'); print('ready', flush=True); time.sleep(600)"
OPTIONS = {"nvml": False, "device_prefix": DEVICES}


@attrs.frozen
class Box:
    """A container with a GPU's device file, and the ways to ask it and its host."""

    container: Container
    inside: Session
    host: Session

    def look(self) -> Snapshot:
        """What the container sees."""
        return Snapshot.from_dict(self.inside.call("snapshot"))

    def look_from_host(self) -> Snapshot:
        """What the host sees of the container."""
        host = Snapshot.from_dict(self.host.call("snapshot"))
        return container_processes(host, str(self.container.vmid))


@pytest.fixture
def box(container: Container) -> Iterator[Box]:
    """The run's container, with a GPU's device file in its own /dev for the length of a test."""
    # In place of a character device: for the look at descriptors a file is as good.
    container.run(["/usr/bin/touch", f"{DEVICES}0"])
    host = LocalTransport()
    inside = Session.open(container.inside(host), python=PYTHON, options=OPTIONS)
    outside = Session.open(host, python=PYTHON, options=OPTIONS)
    yield Box(container, inside, outside)
    inside.close()
    outside.close()
    container.run(["/usr/bin/rm", f"{DEVICES}0"])


@pytest.fixture
def hold(box: Box) -> Iterator[Callable[..., None]]:
    """``hold(*prefix)`` starts a process inside that has the device file open."""
    attached: list[subprocess.Popen[bytes]] = []

    def start(*prefix: str) -> None:
        name = ("-P", str(box.container.containers), "-n", str(box.container.vmid))
        argv = ["lxc-attach", *name, "--clear-env", "--", *prefix, PYTHON, "-c", HOLD]
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        attached.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

    yield start
    holders = box.inside.call("snapshot", servers=False)["processes"]
    targets = [{key: p[key] for key in ("pid", "start_ticks")} for p in holders]
    box.inside.call("kill", targets=targets, grace_s=0)
    for process in attached:
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def targets(judgements: tuple[Any, ...]) -> list[dict[str, int]]:
    """What the kill operation is given for a plan."""
    return [{"pid": j.process.pid, "start_ticks": j.process.start_ticks} for j in judgements]


def test_a_holder_has_the_containers_pid_inside_and_both_from_the_host(box, hold):
    """The same process, told apart by nobody's guess: NSpid and cgroup say who it is."""
    hold()

    (inside,) = box.look().processes
    (outside,) = box.look_from_host().processes

    assert (inside.container, inside.nspid) == (None, (inside.pid,))
    assert outside.container == str(box.container.vmid)
    assert outside.nspid == (outside.pid, inside.pid)
    assert outside.container_pid == inside.pid
    assert outside.start_ticks == inside.start_ticks
    assert (outside.title, outside.gpu_devices) == (inside.title, (0,))
    assert outside.pid_ns == inside.pid_ns


def test_the_host_itself_spares_what_a_container_runs(box, hold):
    """A reset of the host never touches its containers."""
    hold()

    plan = plan_reset(Snapshot.from_dict(box.host.call("snapshot")))

    held = [j for j in plan.spare if j.process.container == str(box.container.vmid)]
    assert [j.reason for j in held] == [f"belongs to container {box.container.vmid}"]
    assert [j for j in plan.kill if j.process.container is not None] == []


def test_the_container_kills_its_own_holder_from_inside(box, hold):
    """Planned and killed by its own PIDs."""
    hold()

    plan = plan_reset(box.look())
    result = box.inside.call("kill", targets=targets(plan.kill))

    assert [one["signal"] for one in result["killed"]] == ["SIGTERM"]
    assert box.look().processes == ()


def test_the_container_is_reset_through_its_host(box, hold):
    """Planned and killed by the host's PIDs, where the container's own view is blind."""
    hold()

    plan = plan_reset(box.look_from_host())
    result = box.host.call("kill", targets=targets(plan.kill))

    assert [one["pid"] for one in result["killed"]] == [plan.kill[0].process.pid]
    assert result["left"] == []
    assert box.look().processes == ()


def test_a_container_inside_of_the_container_is_spared_from_both_sides(box, hold):
    """A PID namespace below is somebody else's business, whoever looks."""
    hold("/usr/bin/unshare", "--fork", "--pid", "--mount-proc", "--kill-child")
    hold()

    for look in (box.look(), box.look_from_host()):
        plan = plan_reset(look)
        below = max(look.processes, key=lambda process: len(process.nspid))
        reasons = {j.process.pid: j.reason for j in plan.spare}
        assert reasons[below.pid] == "runs in another PID namespace"
        assert len(plan.kill) == 1
