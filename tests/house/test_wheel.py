"""The wheel, installed where no checkout is, does what the README says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from parts.shared import run_folder, shipped_port, turn

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the files that the repository holds, built once for all test processes."""
    folder = run_folder(tmp_path_factory) / "wheel"
    with turn(folder.with_suffix(".lock")):
        if not folder.exists():
            _build(checkout, folder)
    (built,) = folder.glob("eagleops-*.whl")
    return built


def _build(checkout: Path, folder: Path) -> None:
    # A copy, for the build writes beside its sources.
    source = folder.with_name("wheel-source")
    ignore = shutil.ignore_patterns(".*", "build", "dist", "_build", "*.egg-info", "__pycache__")
    shutil.copytree(checkout, source, ignore=ignore)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", folder, source]
    subprocess.run(build, check=True, capture_output=True)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh venv that holds the wheel and what it asks for, no more."""
    folder = run_folder(tmp_path_factory) / "installed"
    with turn(folder.with_suffix(".lock")):
        if not folder.exists():
            venv.create(folder, with_pip=True)
            install = [folder / "bin" / "python", "-I", "-m", "pip", "install", "-q", wheel]
            subprocess.run(install, check=True, capture_output=True)
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
            timeout=600,
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
    with shipped_port():
        shown = run("eagleops", "demo")

    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "baseline" in shown.stdout
    assert "eagle3-2step" in shown.stdout
    left = json.loads(run("eagleops", "status", "--json").stdout)["servers"]
    assert [server["state"] for server in left] == ["exited", "exited"]
