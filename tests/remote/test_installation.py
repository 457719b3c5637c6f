"""What a server runs on: packages, interpreter, model and machine, without importing any."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from eagleops.remote.machine_facts import counted, parse_meminfo, parse_os_release
from eagleops.remote.model_files import Model, named_in
from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from parts import needs


@contextmanager
def running(python: Path, **settings) -> Iterator[int]:
    """The PID of an interpreter that waits."""
    with subprocess.Popen(
        [python, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **settings,
    ) as process:
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


def test_every_package_is_listed_with_its_version(installed, pip, look) -> None:
    """As pip lists them, but read from the files."""
    listed = {
        package["name"].lower(): package["version"]
        for package in json.loads(pip(installed, "list", "--format=json"))
    }

    found = look(python=str(installed.python))["distributions"]

    assert {package["name"]: package["version"] for package in found} == listed
    assert "sglang" in listed


def test_a_running_process_leads_to_its_virtual_environment(installed, look) -> None:
    """The program behind it is the system's Python; the name that was called leads home."""
    with running(installed.python) as pid:
        found = look(pid=pid)

    assert found["python"]["executable"] == str(installed.python)
    assert found["python"]["prefix"] == str(installed.folder)
    assert found["python"]["version"] == platform.python_version()
    assert [package["name"] for package in found["compared"]] == ["sglang"]


def test_a_path_in_the_environment_is_looked_at_first(installed, look, tmp_path: Path) -> None:
    """PYTHONPATH decides which package a server gets, so it decides here."""
    info = tmp_path / "first" / "sglang-9.9.dist-info"
    info.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "first")}
    with running(installed.python, env=environment) as pid:
        found = look(pid=pid, packages=["sglang"])

    assert found["compared"][0]["version"] == "9.9"
    assert {"name": "sglang", "version": "9.9"} in found["distributions"]


def test_a_python_below_a_shell_is_found(installed, look) -> None:
    """A server behind a wrapper script: the first Python of the tree is its interpreter."""
    with subprocess.Popen(
        ["/bin/sh", "-c", f"{installed.python} -c 'print(flush=True); input()'; true"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as shell:
        shell.stdout.readline()
        found = look(pid=shell.pid)
        shell.communicate(b"\n")

    assert found["python"]["executable"] == str(installed.python)


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("/no/such/python", "/no/such/python ended with exit status 127: "),
        ("/bin/true", "/bin/true did not answer in its own words"),
        ("/bin/false", "/bin/false ended with exit status 1: no output"),
    ],
)
def test_an_interpreter_that_does_not_answer_is_told(look, program: str, problem: str) -> None:
    """No packages are listed, and the reason is given."""
    found = look(python=program)

    assert found["python"]["problem"].startswith(problem)
    assert (found["distributions"], found["compared"]) == ([], [])


def test_the_machine_alone_can_be_asked(look) -> None:
    """Of a container's host nobody asks for packages."""
    found = look()

    machine = found["machine"]
    assert machine["hostname"] == socket.gethostname()
    assert machine["kernel"] == platform.release()
    assert machine["kernel_cmdline"] == Path("/proc/cmdline").read_text().strip()
    assert machine["cpu_count"] == os.cpu_count()
    assert machine["memory_mib"] > 0
    assert (found["python"], found["distributions"], found["models"]) == (None, [], [])


def test_an_unknown_server_is_a_failure(look) -> None:
    """A name that was never launched is told, with the names that were."""
    with pytest.raises(OperationFailed) as raised:
        look(server="none")

    assert raised.value.kind == "no_such_server"


def model_folder(folder: Path) -> Path:
    """A model as it lies on a disk."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["Kimi"]}')
    (folder / "modeling.py").write_text("class Kimi: ...\n")
    with (folder / "model-00001.safetensors").open("wb") as file:
        file.truncate(50 * 1024**3)  # sparse: what nobody can hash in time
    return folder


def test_a_models_identity_is_its_small_files_and_the_large_ones_sizes(
    look, tmp_path: Path
) -> None:
    """Configuration and code by hash, weights by size and time."""
    folder = model_folder(tmp_path / "kimi")
    os.utime(folder / "model-00001.safetensors", (1_700_000_000, 1_700_000_000))

    (found,) = look(models=[{"role": "target", "name": str(folder)}])["models"]

    files = {file["path"]: file for file in found["files"]}
    assert found["config_sha256"] == hashlib.sha256(b'{"architectures": ["Kimi"]}').hexdigest()
    assert files["model-00001.safetensors"] == {
        "path": "model-00001.safetensors",
        "bytes": 50 * 1024**3,
        "mtime_s": 1_700_000_000,
    }
    assert files["modeling.py"]["sha256"] == hashlib.sha256(b"class Kimi: ...\n").hexdigest()
    assert found["bytes"] == sum(file["bytes"] for file in files.values())


def test_a_model_of_the_hub_is_its_revision(look, installed, tmp_path: Path) -> None:
    """A repository's name leads to the snapshot in the server's own cache."""
    hub = tmp_path / "hf" / "hub" / "models--org--draft"
    folder = model_folder(hub / "snapshots" / "0a1b2c")
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text("0a1b2c")
    with running(installed.python, env={**os.environ, "HF_HOME": str(tmp_path / "hf")}) as pid:
        models = [{"role": "draft", "name": "org/draft"}, {"role": "target", "name": "org/none"}]
        found, missing = look(pid=pid, packages=[], models=models)["models"]

    assert (found["revision"], found["path"]) == ("0a1b2c", str(folder))
    assert missing["problem"] == "no such folder, and not in the hub's cache"


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (
            ["p", "-m", "x", "--model-path", "/t", "--speculative-draft-model-path=/d"],
            [Model("target", "/t"), Model("draft", "/d")],
        ),
        (
            ["vllm", "serve", "/t", "--speculative_config", '{"method": "eagle3", "model": "/d"}'],
            [Model("target", "named"), Model("draft", "/d")],
        ),
        (["vllm", "--speculative-config", "no json"], [Model("target", "named")]),
        (["x", "--model", "--trust-remote-code"], [Model("target", "named")]),
    ],
)
def test_a_command_names_its_models(argv: list[str], expected: list[Model]) -> None:
    """Both engines' flags, in each of their spellings; a drafter may stand in JSON."""
    model = None if expected[0].name == "/t" else "named"

    assert named_in(argv, model) == expected


def test_small_texts_of_the_machine_are_read() -> None:
    """os-release, meminfo, and governors of which one processor has another."""
    assert parse_os_release('NAME="Debian"\nPRETTY_NAME="Debian 12 (bookworm)"\n') == (
        "Debian 12 (bookworm)"
    )
    assert parse_os_release("") is None
    assert parse_meminfo("MemTotal:       65536 kB\nMemFree: 1 kB\n") == 64
    assert parse_meminfo("") is None
    assert counted(["performance\n", "performance\n", "powersave\n", None]) == {
        "performance": 2,
        "powersave": 1,
    }


def test_the_oldest_python_sees_the_same(installed, look, tmp_path: Path) -> None:
    """The session's interpreter may be 3.8: what it tells of another one is the same."""
    oldest = needs.python("3.8")
    (installed.site / "sglang/srt/engine.py").write_text("patched = True\n")
    models = [{"role": "target", "name": str(model_folder(tmp_path / "kimi"))}]
    asked = {"python": str(installed.python), "models": models}
    transport = LocalTransport(env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "home")})
    session = Session.open(transport, python=oldest, options={"nvml": False})
    try:
        seen = session.call("installation", **asked)
    finally:
        session.close()

    assert session.python_version.startswith("3.8.")
    assert seen == look(**asked)
