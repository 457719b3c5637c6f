"""The reference names every command and every flag that there is."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from eagleops.inventory import ContainerEntry, HostEntry
from eagleops.inventory.entries import Defaults
from eagleops.inventory.suite import (
    CheckEntry,
    CommandCheck,
    MeasureEntry,
    ProfileCheck,
    SuiteEntry,
    WebhookEntry,
)
from eagleops.profile import ProfileEntry
from eagleops.remote.operations import OPERATIONS
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


def test_every_operation_has_its_entry(checkout: Path) -> None:
    """The page on remote operations describes each that a session serves."""
    page = (checkout / "docs/reference/remote-operations.md").read_text(encoding="utf-8")

    assert re.findall(r"autofunction:: eagleops\.remote\.(\w+)\.\1\n", page) == list(OPERATIONS)


@pytest.mark.parametrize(
    ("section", "kind"),
    [
        ("defaults", Defaults),
        ("hosts", HostEntry),
        ("containers", ContainerEntry),
        ("profiles", ProfileEntry),
    ],
)
def test_every_key_of_hosts_yaml_has_its_line(checkout: Path, section: str, kind: type) -> None:
    """Each key that an inventory may hold is described in its section."""
    page = sections((checkout / "docs/reference/hosts-yaml.md").read_text(encoding="utf-8"))
    # Names of entries are keys themselves, a container's is asked for as `name`, and where a
    # container has an address the keys of SSH are the hosts' ones.
    own = {"name", "origin", "removed", "lines"}
    shared = {field.name for field in attrs.fields(HostEntry)} if kind is ContainerEntry else set()
    keys = {field.name for field in attrs.fields(kind)} - own - (shared - {"address"})
    if "container_name" in keys:
        keys = keys - {"container_name"} | {"name"}

    assert {key for key in keys if f"| `{key}` |" not in page[section]} == set()


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("", SuiteEntry),
        ("profiles", ProfileCheck),
        ("checks", CheckEntry),
        ("commands", CommandCheck),
        ("notify", WebhookEntry),
    ],
)
def test_the_keys_of_a_suite_are_the_documented_ones(
    checkout: Path, heading: str, kind: type
) -> None:
    """Each key of the nightly section has its line, and no line is of a key that is gone."""
    page = sections((checkout / "docs/reference/hosts-yaml.md").read_text(encoding="utf-8"))
    parts = sections(page["nightly"].replace("\n### ", "\n## "))
    part = parts[heading] if heading else page["nightly"].partition("\n### ")[0]
    # The name of a suite is its key, and its place in the file is nobody's to write.
    keys = {field.name for field in attrs.fields(kind)} - {"name", "origin"}

    assert set(re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE)) == keys


def test_how_a_suite_measures_is_documented_with_its_defaults(checkout: Path) -> None:
    """The keys of ``measure`` stand in its line."""
    page = sections((checkout / "docs/reference/hosts-yaml.md").read_text(encoding="utf-8"))
    (line,) = re.findall(r"^\| `measure` \|.*", page["nightly"], flags=re.MULTILINE)

    for field in attrs.fields(MeasureEntry):
        assert re.search(rf"`{field.name}` `?{field.default}\b", line)


def test_every_command_s_document_is_described(checkout: Path) -> None:
    """Each command's ``--json`` document has its section."""
    page = sections((checkout / "docs/reference/json.md").read_text(encoding="utf-8"))
    described = {name.strip() for heading in page for name in heading.split(",")}

    assert {name.replace("_", "-") for name in namespace.task_names} - described == set()
