"""The wheel, installed where no checkout is, does what the README says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# One process builds the wheel and the venv, whatever the number of workers.
pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the files that the repository holds, in a folder of its own."""
    source = tmp_path_factory.mktemp("source") / "eagleops"
    ignore = shutil.ignore_patterns(".*", "build", "dist", "_build", "*.egg-info", "__pycache__")
    shutil.copytree(checkout, source, ignore=ignore)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", out, source],
        check=True,
        capture_output=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    (built,) = out.glob("eagleops-*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh venv that holds the wheel and what it asks for, no more."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "-q", wheel],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder / "bin"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """Runs an installed program in an empty folder, as a person with a plain shell would."""
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {
        "PATH": f"{installed}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            check=False,
            cwd=empty,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
        )

    return run


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    """Neither tests nor docs are installed beside eagleops; its data files are."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}

    assert tops == {"eagleops"}
    assert {"eagleops/py.typed", "eagleops/hosts.yaml"} - set(names) == set()


def test_the_installed_command_lists_its_tasks(run: Run) -> None:
    """``eagleops --list`` names the tasks of the contract."""
    listed = run("eagleops", "--list")

    assert (listed.returncode, listed.stderr) == (0, "")
    for task in ("demo", "doctor", "hosts", "launch", "logs", "reset-gpus", "status", "stop"):
        assert task in listed.stdout.split()


def test_an_empty_folder_has_the_shipped_inventory(run: Run) -> None:
    """Without a hosts.yaml, the packaged one brings the embedded box and its profiles."""
    shown = run("eagleops", "hosts", "--json")

    document = json.loads(shown.stdout)
    assert (shown.returncode, document["ok"]) == (0, True)
    assert "sim" in shown.stdout
    assert "eagle3-2step" in shown.stdout


def test_the_demo_runs_from_the_wheel(run: Run) -> None:
    """``eagleops demo`` does the main job in an empty folder, and leaves nothing running."""
    shown = run("eagleops", "demo")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "baseline" in shown.stdout
    assert "eagle3-2step" in shown.stdout
    left = json.loads(run("eagleops", "status", "--json").stdout)["servers"]
    assert [server["state"] for server in left] == ["exited", "exited"]
