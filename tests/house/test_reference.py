"""The reference names every command and every flag that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eagleops.tasks import namespace
from eagleops.tasks.command import COMMON_HELP


def sections(text: str) -> dict[str, str]:
    """A page's second-level sections by their heading."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def reference(checkout: Path) -> dict[str, str]:
    """The sections of the page on commands."""
    return sections((checkout / "docs/reference/commands.md").read_text(encoding="utf-8"))


def test_every_command_has_its_section(reference) -> None:
    """No command is undocumented, and no section is of a command that is gone."""
    commands = {name.replace("_", "-") for name in namespace.task_names}

    assert set(reference) - {"For every command"} == commands


def flag_names(task) -> set[str]:
    """The flags by which a task's own options differ from their defaults."""
    flags = set()
    for argument in task.get_arguments():
        name = argument.name.replace("_", "-")
        if name not in COMMON_HELP:
            flags.add(f"--no-{name}" if argument.default is True else f"--{name}")
    return flags


def test_every_flag_is_in_its_command_s_section(reference) -> None:
    """Each flag of each command is named where the command is described."""
    unnamed = {
        f"{command} {flag}"
        for command in namespace.task_names
        for flag in flag_names(namespace[command])
        if not re.search(rf"`{flag}\b", reference[command.replace("_", "-")])
    }

    assert unnamed == set()
    assert all(f"`--{name}" in reference["For every command"] for name in COMMON_HELP)
