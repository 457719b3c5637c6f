"""A real wheel, really installed, in a virtual environment of the run's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.session import Session
from eagleops.transport.local import LocalTransport

LARGE = 9 * 1024 * 1024

# The sources of a package that has what an engine's has: modules to patch, a tuned
# configuration, a kernel library, a script.
SOURCES = {
    "sglang/__init__.py": b"",
    "sglang/srt/__init__.py": b"",
    "sglang/srt/engine.py": b"def launch():\n    return 'as it was'\n",
    "sglang/srt/scheduler.py": b"STEPS = 1\n",
    "sglang/srt/configs/moe.json": b'{"BLOCK": 64}\n',
    "sglang/kernels.so": bytes(LARGE),
}

# A build backend that needs nothing but the standard library: pip does the rest.
BACKEND = """
import base64, hashlib, os, zipfile

NAME, VERSION = "sglang", "0.5.17+test"
INFO = NAME + "-" + VERSION + ".dist-info"


def _wheel(folder, files):
    files[INFO + "/METADATA"] = "Metadata-Version: 2.1\\nName: sglang\\nVersion: {}\\n".format(
        VERSION).encode()
    files[INFO + "/WHEEL"] = b"Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    files[INFO + "/entry_points.txt"] = b"[console_scripts]\\nsglang = sglang.srt.engine:launch\\n"
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append("{},sha256={},{}".format(name, digest, len(data)))
    rows.append(INFO + "/RECORD,,")
    files[INFO + "/RECORD"] = "\\n".join(rows).encode()
    name = "{}-{}-py3-none-any.whl".format(NAME, VERSION)
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


def _sources():
    files = {}
    for folder, _, names in os.walk("sglang"):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                files[path] = file.read()
    return files


def build_wheel(folder, config_settings=None, metadata_directory=None):
    return _wheel(folder, _sources())


def build_editable(folder, config_settings=None, metadata_directory=None):
    return _wheel(folder, {"__editable__.sglang.pth": os.getcwd().encode() + b"\\n"})
"""

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "sglang"
dynamic = ["version"]
"""


def write_sources(folder: Path) -> Path:
    """The package's source tree."""
    for name, data in SOURCES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    return folder


@attrs.frozen
class Environment:
    """A virtual environment with the package in it."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site(self) -> Path:
        """Its site-packages."""
        (site,) = self.folder.glob("lib/python3*/site-packages")
        return site

    def copied(self, folder: Path) -> Environment:
        """A copy of it, to be changed."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Environment(folder)


@pytest.fixture(scope="session")
def with_pip(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with pip; it is not to be changed."""
    folder = tmp_path_factory.mktemp("with-pip")
    venv.create(folder, with_pip=True)
    return Environment(folder)


@pytest.fixture
def empty(tmp_path: Path) -> Environment:
    """An environment with nothing in it."""
    venv.create(tmp_path / "env", with_pip=False)
    return Environment(tmp_path / "env")


Pip = Callable[..., str]


@pytest.fixture(scope="session")
def pip(with_pip: Environment) -> Pip:
    """``pip(environment, "install", ...)``: a real pip, without the network."""

    def run(environment: Environment, *arguments: str | Path) -> str:
        return subprocess.run(
            [
                *(with_pip.python, "-m", "pip", "--disable-pip-version-check"),
                *("--python", environment.python, *arguments),
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    return run


@pytest.fixture(scope="session")
def installed_once(
    with_pip: Environment, pip: Pip, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment in which the package's wheel was built and installed."""
    folder = tmp_path_factory.mktemp("wheel")
    pip(with_pip, "wheel", "-q", "--no-deps", "-w", folder, write_sources(folder / "source"))
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env", with_pip=False)
    environment = Environment(folder / "env")
    pip(environment, "install", "-q", "--no-index", wheel)
    return environment


@pytest.fixture
def installed(installed_once: Environment, tmp_path: Path) -> Environment:
    """An environment with the package, for this test to spoil."""
    return installed_once.copied(tmp_path / "env")


Look = Callable[..., dict[str, Any]]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A real session on this machine, as a user without any configuration."""
    home = tmp_path / "home"
    home.mkdir()
    transport = LocalTransport(env={"PATH": "/usr/bin:/bin", "HOME": str(home)})
    opened = Session.open(transport, python=sys.executable, options={"nvml": False})
    yield opened
    opened.close()


@pytest.fixture
def look(session: Session) -> Look:
    """The operation: ``look(python=..., packages=[...])``."""
    return lambda **arguments: session.call("installation", **arguments)
