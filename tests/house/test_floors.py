"""Imports go down the floors only, and what is dangerous is used in one place."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

# A package of others, and the only modules of ours that may import it. What is not listed
# here may be imported anywhere.
FENCES = {
    "fabric": ("eagleops.transport",),
    "paramiko": ("eagleops.transport",),
    "invoke": ("eagleops.tasks",),
    "rich": ("eagleops.render", "eagleops.tasks", "eagleops.view"),
    "requests": ("eagleops.notify", "eagleops.streaming"),
    "yaml": ("eagleops.inventory", "eagleops.profile"),
    # A secret's `cmd:` runs here, never on a machine.
    "subprocess": (
        "eagleops.remote",
        "eagleops.sim",
        "eagleops.transport",
        "eagleops.workflows.secrets",
    ),
    "eagleops.sim": ("eagleops.machine", "eagleops.sim"),
}


def within(name: str, packages: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of these packages or lies inside one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def calls(tree: ast.Module, *names: str) -> list[int]:
    """The lines that call a function by one of these dotted names."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names
    ]


def test_imports_go_down_the_floors_only(checkout: Path) -> None:
    """import-linter's contract in pyproject.toml holds, and it names every module."""
    program = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"

    checked = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=checkout, capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_guide_tells_every_module_s_floor(checkout: Path, modules) -> None:
    """Each package of the top level has its place, for who reads and for who works on it."""
    tops = {module.name.split(".")[1] for module in modules if "." in module.name}
    told = {top for top in tops if not top.startswith("_")}

    for page in ("CONTRIBUTING.md", "docs/explanation/floors.md"):
        text = (checkout / page).read_text(encoding="utf-8")
        assert {top for top in told if not re.search(f"`{top}/?`", text)} == set(), page


@pytest.mark.parametrize("package", FENCES)
def test_a_fenced_package_is_imported_in_its_own_floor_alone(modules, package: str) -> None:
    """What reaches machines, terminals or the network is imported where it belongs."""
    allowed = FENCES[package]

    trespasses = [
        f"{module.name}:{line} imports {imported}"
        for module in modules
        for imported, line in module.imports()
        if within(imported, (package,)) and not within(module.name, allowed)
    ]

    assert trespasses == []


def test_logging_is_configured_in_one_module(modules) -> None:
    """A library that configured logging on import would take it from its user."""
    places = [m.name for m in modules if calls(m.tree, "structlog.configure", "configure_once")]

    assert places == ["eagleops.log"]


def test_no_command_meets_a_local_shell(modules) -> None:
    """A command is a list: there is no shell=True, os.system or os.popen."""
    shells = [
        f"{module.name}:{line}"
        for module in modules
        for line in calls(module.tree, "os.system", "os.popen", "subprocess.getoutput")
    ]
    keywords = [
        f"{module.name}:{node.value.lineno}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.keyword)
        and node.arg == "shell"
        and ast.unparse(node.value) != "False"
    ]

    assert shells + keywords == []
