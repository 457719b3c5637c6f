"""A night in a real container whose GPUs its host, and other containers, use as well."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from eagleops.inventory import ContainerEntry, HostEntry
from eagleops.machine import Machine
from eagleops.nights.store import NightStore
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.nightly.run import nightly
from nightly.boxes import HOLDS, Boxes, end_all, found
from parts.container import Container


@attrs.define(eq=False)
class Inside:
    """A box in a container, and its host."""

    boxes: Boxes
    container: Container
    host: Machine
    machine: Machine

    def night(self, suite: str) -> NightReport:
        """One night in the container."""
        library = self.boxes.open(suite)
        return nightly(
            lambda _name: self.machine,
            library.inventory,
            library.inventory.suite(),
            store=NightStore.beside(self.boxes.folder / "ledger.db"),
            ledger=library.inventory.ledger,
        )


def mounts(folder: Path) -> dict[str, str]:
    """The container has this interpreter and this package under their own names."""
    imported = {path for path in sys.path if Path(path).is_dir()}
    paths = sorted(map(Path, {sys.prefix, sys.base_prefix, *imported, str(folder)}))
    kept = [p for p in paths if not any(q in p.parents for q in paths) and Path("/usr") != p]
    return {str(path): str(path) for path in kept if Path("/usr") not in path.parents}


@pytest.fixture
def inside(boxes: Boxes, make_container: Callable[..., Container]) -> Iterator[Inside]:
    """A container whose GPUs are the box's."""
    boxes.open()
    box = boxes.box()
    container = make_container(mounts=mounts(box.directory))
    here = HostEntry(name="pve", transport="sim", python=sys.executable)
    host = Machine("pve", here, box.transport(), box.options, box.environment)
    entry = ContainerEntry(name="sim", on="pve", vmid=container.vmid, python=sys.executable)
    way = container.inside(box.transport())
    environment = {**box.environment, "EAGLEOPS_SIM_PROFILE": '{"speed": 20, "start_s": 0.2}'}
    machine = Machine("sim", entry, way, box.options, environment, outer=host)
    yield Inside(boxes, container, host, machine)
    end_all(machine)
    machine.close()
    host.close()


def test_what_runs_outside_of_a_container_is_never_ended(inside: Inside) -> None:
    """`force`: a job on the host that holds the same GPU is named, and lives on."""
    user = inside.boxes.use_gpu()

    report = inside.night("profiles: [baseline], busy: force")

    busy = found(report, "busy")
    assert busy.state == "skip"
    assert f"PID {user.pid} (" in busy.message
    assert "is never ended" in busy.message
    assert found(report, "launch:baseline").state == "skip"
    assert user.poll() is None


def test_what_runs_in_the_container_itself_may_be_forced_away(inside: Inside) -> None:
    """`force`: its own job ends, and the profile is measured in the container."""
    device = Path(inside.boxes.box().layout.devices, "nvidia0")
    argv = inside.container.wrapper.argv([sys.executable, "-c", HOLDS, str(device)])
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "held\n"

        report = inside.night("profiles: [baseline], busy: force")

        assert user.wait(60) != 0
    assert found(report, "speed:baseline").state == "pass"
