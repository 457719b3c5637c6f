"""The main job's places: the embedded box at hand, behind SSH, and in a container.

``places`` gives the three as machines that share nothing but this computer; ``commands``
runs the command line on an inventory of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import eagleops
from eagleops.inventory import ContainerEntry, HostEntry
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.sim.box import SimBox
from eagleops.transport.base import Argv, Channel, Completed, Transport
from parts.container import Container
from parts.reserved import free_port
from parts.sshd import Sshd

TP = 2


@attrs.define(eq=False)
class Counted:
    """A transport that counts what is started through it."""

    inner: Transport
    started: list[tuple[str, ...]] = attrs.field(factory=list)

    @property
    def where(self) -> str:
        return self.inner.where

    def open(self, argv: Argv, *, timeout_s: float | None = None) -> Channel:
        self.started.append(tuple(map(os.fsdecode, argv)))
        return self.inner.open(argv, timeout_s=timeout_s)

    def run(self, argv: Argv, *, stdin: bytes = b"", timeout_s: float | None = None) -> Completed:
        self.started.append(tuple(map(os.fsdecode, argv)))
        return self.inner.run(argv, stdin=stdin, timeout_s=timeout_s)

    def close(self) -> None:
        self.inner.close()


@attrs.frozen
class Place:
    """A machine with its box, and the profile that the tests launch there."""

    machine: Machine
    box: SimBox
    profile: Profile
    transport: Counted
    sshd: Sshd | None

    def again(self) -> Machine:
        """The same machine as another client meets it: with no session open."""
        return attrs.evolve(self.machine)


def profile_of(box_port: int, **sim: Any) -> Profile:
    """A small baseline: two workers, an environment worth verifying."""
    return Profile(
        name="baseline",
        engine="sglang",
        model="/shared/kimi-k2.5-int4",
        port=box_port,
        args={"tp-size": TP, "host": "127.0.0.1"},
        env={"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "NCCL_BUFFSIZE": "16777216"},
        sim={"start_s": 0.5, "warmup_s": 0.1, **sim},
    )


@pytest.fixture
def make_place(
    tmp_path: Path,
    make_sshd: Callable[..., Sshd],
    make_container: Callable[..., Container],
) -> Iterator[Callable[..., Place]]:
    """Makes a place by its way in: ``local``, ``ssh`` or ``pct``."""
    made: list[Place] = []

    def make(way: str, **sim: Any) -> Place:
        box = SimBox.prepare(tmp_path / "box", gpus=TP)
        sshd = None if way == "local" else make_sshd()
        outer = box.transport() if sshd is None else sshd.transport()
        if way == "pct":
            outer = make_container(mounts=_mounts(box)).inside(outer)
        transport = Counted(outer)
        entry = HostEntry(name=way, transport="sim", python=sys.executable)
        if way == "pct":
            entry = ContainerEntry(name=way, on="pve", vmid=129, python=sys.executable)
        machine = Machine(way, entry, transport, box.options, _launch_env(box, sim))
        made.append(Place(machine, box, profile_of(free_port(), **sim), transport, sshd))
        return made[-1]

    yield make
    for place in made:
        end_all(place.again())
        place.machine.close()
        place.transport.close()


def end_all(machine: Machine) -> None:
    """Stops whatever servers still run there."""
    for server in machine.call("servers")["servers"]:
        if server["state"] != "exited" or server["tree"]:
            machine.call("stop", name=server["name"], grace_s=0.1)
    machine.close()


def _launch_env(box: SimBox, sim: dict[str, Any]) -> dict[str, str]:
    settings = profile_of(1, **sim).sim
    return {**box.environment, "EAGLEOPS_SIM_PROFILE": json.dumps(dict(settings))}


def _mounts(box: SimBox) -> dict[str, str]:
    """The container has this interpreter and this package under their own names."""
    imported = {path for path in sys.path if Path(path).is_dir()}
    folders = {sys.prefix, sys.base_prefix, *imported, str(box.directory)}
    return {folder: folder for folder in _outermost(folders)}


def _outermost(folders: set[str]) -> list[str]:
    paths = sorted(map(Path, folders))
    # /usr is in the container anyway.
    kept = [p for p in paths if not any(q in p.parents for q in paths) and Path("/usr") != p]
    return [str(path) for path in kept if Path("/usr") not in path.parents]


@attrs.frozen
class Answer:
    """What a command printed and how it ended."""

    exit_status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        (line,) = self.stdout.splitlines()
        document: dict[str, Any] = json.loads(line)
        return document


@attrs.define(eq=False)
class Commands:
    """The command line in a folder of its own, with a box of its own."""

    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        # Python's streams as a person has them: an image may set PYTHONUNBUFFERED.
        own = ("EAGLEOPS_", "PYTHONUNBUFFERED")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(own)}
        package = str(Path(eagleops.__file__).parents[1])
        places = {
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "PYTHONPATH": package,
        }
        return {**clean, **places, "COLUMNS": "120"}

    @property
    def box(self) -> SimBox:
        """The box that the commands of this folder use."""
        return SimBox.prepare(self.folder / "state/eagleops/sim", gpus=TP)

    def has_begun(self) -> bool:
        """Whether a launched server of the profile has said anything yet."""
        log = Path(self.box.layout.state, "eagleops/servers/baseline/server.log")
        return log.exists() and log.stat().st_size > 0

    def argv(self, *words: str) -> list[str]:
        """The command line of ``eagleops WORDS``."""
        return [sys.executable, "-m", "eagleops", *words]

    def start(self, *words: str, **settings: Any) -> subprocess.Popen[str]:
        """Starts a command."""
        return subprocess.Popen(
            self.argv(*words),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **settings,
        )

    def __call__(self, *words: str) -> Answer:
        """Runs a command to its end."""
        process = self.start(*words)
        stdout, stderr = process.communicate(timeout=300)
        return Answer(process.returncode, stdout, stderr)

    def write(
        self, *, sim: str = "{start_s: 0.5, warmup_s: 0.1}", more: Sequence[str] = ()
    ) -> None:
        """Writes the folder's hosts.yaml."""
        lines = [
            "defaults: {host: sim, profile: baseline}",
            f"hosts: {{sim: {{transport: sim, sim: {{gpus: {TP}}}}}}}",
            "profiles:",
            "  baseline:",
            "    engine: sglang",
            "    model: /shared/kimi-k2.5-int4",
            f"    port: {self.port}",
            f"    args: {{tp-size: {TP}, host: 127.0.0.1}}",
            "    env: {NCCL_PROTO: LL, NCCL_ALGO: Ring, HF_TOKEN: hf_never_shown}",
            f"    sim: {sim}",
            *more,
        ]
        (self.folder / "hosts.yaml").write_text("\n".join(lines) + "\n")


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """The command line, with a hosts.yaml whose box is this test's own."""
    made = Commands(tmp_path, free_port())
    made.write()
    yield made
    made.write()
    for server in made("status", "--json").document.get("servers", ()):
        if server["state"] != "exited":
            made("stop", "--name", server["name"], "--grace", "0.1")
