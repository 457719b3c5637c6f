"""The names that a user imports: few, sorted, and all of them there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import eagleops
from eagleops.library import Server


def documented_names(text: str) -> set[str]:
    """Names that a text takes from the package's top: ``eagleops.x`` in Python blocks."""
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: set[str] = set()
    for block in blocks:
        names.update(re.findall(r"\beagleops\.([A-Za-z_]\w*)", block))
        for line in re.findall(r"from eagleops import ([\w, ]+)", block):
            names.update(name.strip() for name in line.split(","))
    return names


def test_the_public_names_are_sorted() -> None:
    """``__all__`` reads as an index."""
    assert eagleops.__all__ == sorted(eagleops.__all__)


def test_each_public_name_is_there() -> None:
    """What ``__all__`` promises can be had, and ``dir`` shows no more than that."""
    assert [name for name in eagleops.__all__ if not hasattr(eagleops, name)] == []
    assert dir(eagleops) == sorted(eagleops.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A typing error does not surface as a KeyError of some table."""
    with pytest.raises(AttributeError, match="'eagleops' has no attribute 'lauch'"):
        eagleops.lauch  # noqa: B018


def test_star_import_brings_the_public_names_alone() -> None:
    """``from eagleops import *`` works in a fresh interpreter, and brings ``__all__``."""
    program = (
        "before = set(globals()) | {'before'}\n"
        "from eagleops import *\n"
        "print(sorted(set(globals()) - before - {'__version__'}))"
    )

    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    expected = [name for name in eagleops.__all__ if name != "__version__"]
    assert shown.stdout.strip() == str(expected)


def test_the_readme_uses_public_names_alone(checkout: Path) -> None:
    """What the README shows is what stays."""
    readme = (checkout / "README.md").read_text(encoding="utf-8")

    assert documented_names(readme) - set(eagleops.__all__) == set()


def test_what_a_prompt_shows_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``>>> box`` is one short line, and shows nothing of the environment that it was typed in."""
    monkeypatch.setenv("HF_TOKEN", "hf_never_shown")
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "hosts:\n"
        f"  sim: {{transport: sim, sim: {{directory: {tmp_path}/box}}}}\n"
        "  here: {transport: local}\n"
        "profiles: {small: {engine: sglang, model: /m, env: {HF_TOKEN: hf_never_shown}}}\n"
    )

    with eagleops.load(file) as library:
        hosts = [library.host("sim"), library.host("here")]
        servers = [Server(host.machine, "small") for host in hosts]
        machines = [host.machine for host in hosts]
        shown = [repr(one) for one in (library, *hosts, *servers, *machines)]
        ways = [repr(machine.transport) for machine in machines]

    assert shown == [
        f"Library(inventory='{file}')",
        "Host(machine=Machine(name='sim'))",
        "Host(machine=Machine(name='here'))",
        "Server(machine=Machine(name='sim'), name='small')",
        "Server(machine=Machine(name='here'), name='small')",
        "Machine(name='sim')",
        "Machine(name='here')",
    ]
    assert "hf_never_shown" not in "".join([*shown, *ways])
