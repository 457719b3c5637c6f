"""What runs over there runs under Python 3.8 with nothing installed."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import eagleops
from parts import needs

# In the standard library of later versions, but not of 3.8.
LATER = {"graphlib", "tomllib", "zoneinfo"}


@pytest.fixture(scope="module")
def remote(modules):
    """The modules of the remote package."""
    return [module for module in modules if module.name.startswith("eagleops.remote")]


def test_every_remote_module_is_python_3_8_text(remote) -> None:
    """The grammar of 3.8 reads every module of the remote package."""
    assert remote != []
    for module in remote:
        ast.parse(module.text, str(module.path), feature_version=(3, 8))


def test_the_remote_package_imports_the_standard_library_alone(remote) -> None:
    """It imports neither an installed package nor the rest of eagleops."""
    known = (sys.stdlib_module_names | {"__future__"}) - LATER

    foreign = [
        f"{module.name}:{line} imports {imported}"
        for module in remote
        for imported, line in module.imports()
        if imported.partition(".")[0] not in known
        and not imported.startswith("eagleops.remote")
        and imported != "eagleops"
    ]

    assert foreign == []


def test_every_remote_module_loads_under_python_3_8(remote) -> None:
    """A real 3.8, isolated from any site-packages, imports every one of them."""
    python = needs.python("3.8")
    names = [module.name for module in remote if not module.name.endswith("supervisor")]
    # eagleops' own __init__ is for the client, so over there an empty package stands for it.
    program = (
        "import importlib, sys, types\n"
        "package = types.ModuleType('eagleops'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['eagleops'] = package\n"
        "for name in sys.argv[2:]: importlib.import_module(name)\n"
    )

    loaded = subprocess.run(
        [python, "-I", "-W", "error", "-c", program, Path(eagleops.__file__).parent, *names],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (loaded.returncode, loaded.stderr) == (0, "")
