"""The real engine of ``make test-real``, and the ways to a machine that has it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from parts import needs
from parts.reserved import free_port

REAL = Path(os.environ.get("EAGLEOPS_REAL", Path(__file__).resolve().parents[2] / ".real"))

# What the user of a CPU build sets, and two NCCL variables as in the team's commands: nothing
# reads those here, so that they show alone whether an environment arrives.
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0|1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "NCCL_PROTO": "LL",
    "NCCL_ALGO": "Ring",
}
ARGS = {
    "load-format": "dummy",
    "max-model-len": 1024,
    "enforce-eager": True,
    "tensor-parallel-size": 2,
    "distributed-executor-backend": "mp",
}
# A container's /dev is small, and vLLM's workers talk through /dev/shm; gloo looks its own
# host name up. A container made by Proxmox has both.
SHM = "lxc.mount.entry = tmpfs dev/shm tmpfs rw,nosuid,nodev,create=dir,size=1g 0 0"
HOSTS_FILE = "127.0.0.1 localhost llm\n"


@attrs.frozen
class RealEngine:
    """vLLM's CPU build, and two models without weights."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter that has vLLM."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def model(self) -> Path:
        """A model that it serves."""
        return self.folder / "model"

    @property
    def model_cannot_serve(self) -> Path:
        """A model with which it gets ready and then fails at the first completion."""
        return self.folder / "model-cannot-serve"

    @property
    def places(self) -> set[Path]:
        """The folders that a container needs: the venv's interpreter lives elsewhere."""
        venv = self.folder / "venv"
        return {self.folder, venv.resolve(), self.python.resolve().parents[1]}


@pytest.fixture(scope="session")
def real_engine() -> RealEngine:
    """The installed engine."""
    if not (REAL / "stamp").exists():
        needs.cannot(f"no vLLM in {REAL}: make test-real installs it")
    return RealEngine(REAL.resolve())


@attrs.define
class Desk:
    """A folder with a hosts.yaml, in which a person types commands.

    Attributes:
        folder: Where they are typed.
        port: Of the profiles' server.
        hide: Texts of this run, and what stands for them in the record.
        record: What was typed and printed, as the documentation shows it.
    """

    folder: Path
    port: int
    hide: dict[str, str]
    record: list[str] = attrs.field(factory=list)

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Runs one eagleops command."""
        return subprocess.run(
            [sys.executable, "-m", "eagleops", *argv],
            check=False,
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def shows(self, *argv: str, status: int = 0) -> str:
        """Runs a command as a person does, records it, and gives what it printed."""
        ran = self.run(*argv)
        self.note(f"$ eagleops {shlex.join(argv)}\n{ran.stdout}")
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout

    def asks(self, *argv: str, status: int = 0) -> dict[str, Any]:
        """Runs a command as a program does, and gives its document."""
        ran = self.run(*argv, "--json")
        assert ran.returncode == status, ran.stdout + ran.stderr
        document: dict[str, Any] = json.loads(ran.stdout)
        return document

    def completes(self, model: Path) -> tuple[int, dict[str, Any]]:
        """Asks the server for one completion: the HTTP status and the answer."""
        body = {"model": str(model), "prompt": "to be or", "max_tokens": 8, "temperature": 0}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        shown = f"$ curl -s localhost:{self.port}/v1/completions -d '{json.dumps(body)}'\n"
        self.note(f"{shown}HTTP {status}: {text.decode(errors='replace')[:200]}…\n")
        return status, json.loads(text)

    def note(self, text: str) -> None:
        """Puts a text on record, without this machine's own paths."""
        for private, shown in self.hide.items():
            text = text.replace(private, shown)
        self.record.append(text)


Lay = Callable[..., Desk]


@pytest.fixture
def lay(real_engine: RealEngine, tmp_path: Path, sshd, make_container, request) -> Iterator[Lay]:
    """Lays out a desk for an inventory's hosts and containers; its servers end with the test.

    It asks for the ways in itself, so that they are still there when it stops the servers.
    """
    laid: list[Desk] = []

    def lay(inventory: dict[str, Any], hide: dict[str, str]) -> Desk:
        port = free_port()
        profile = {
            "engine": "vllm",
            "model": str(real_engine.model),
            "python": str(real_engine.python),
            "port": port,
            "args": ARGS,
            "env": ENVIRONMENT,
        }
        inventory["profiles"] = {
            "tiny": profile,
            "tiny-titled": {"extends": "tiny", "env": {"SPT_NOENV": None}},
            "cannot-serve": {"extends": "tiny", "model": str(real_engine.model_cannot_serve)},
        }
        inventory["defaults"] = {"host": "box", "profile": "tiny"}
        (tmp_path / "hosts.yaml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
        desk = Desk(tmp_path, port, {str(real_engine.folder): "/opt/real", **hide})
        laid.append(desk)
        return desk

    yield lay
    for desk in laid:
        desk.run("stop")
        _save(desk, request.node.name)


def _save(desk: Desk, name: str) -> None:
    folder = REAL / "sessions"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text("\n".join(desk.record), encoding="utf-8")


@pytest.fixture
def over_ssh(lay: Lay, sshd, tmp_path: Path) -> Desk:
    """The machine reached by a real sshd."""
    config = tmp_path / "ssh_config"
    config.write_text(sshd.ssh_config("box"), encoding="utf-8")
    state = tmp_path / "state"
    box = {"address": "box", "ssh_config": str(config), "state_home": str(state)}
    return lay({"hosts": {"box": box}}, {str(state): "/var/lib", str(tmp_path): "/var/lib"})


@pytest.fixture
def in_the_container(lay: Lay, sshd, make_container, real_engine, tmp_path: Path) -> Desk:
    """A container reached by SSH to its host and pct from there."""
    mounts = {place: str(place) for place in real_engine.places if place != Path("/usr")}
    container = make_container(mounts=mounts, settings=[SHM])
    (container.rootfs / "etc/hosts").write_text(HOSTS_FILE, encoding="utf-8")
    config = tmp_path / "ssh_config"
    config.write_text(sshd.ssh_config("pve"), encoding="utf-8")
    pve = {"address": "pve", "ssh_config": str(config)}
    box = {"on": "pve", "vmid": container.vmid, "program": str(container.pct)}
    return lay({"hosts": {"pve": pve}, "containers": {"box": box}}, {str(container.vmid): "129"})
