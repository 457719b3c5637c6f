"""Which file is read, and what is asked of it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from eagleops.errors import InventoryError, ProfileError
from eagleops.inventory import find, load

TEXT = "hosts: {box: {transport: local}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder that is the current one, with no inventory named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EAGLEOPS_INVENTORY", raising=False)
    return tmp_path


def refusal(path: Path) -> str:
    """The text of the error that a file is refused with."""
    with pytest.raises(InventoryError) as caught:
        load(path)
    return str(caught.value)


def test_without_a_file_the_package_s_own_is_read(folder) -> None:
    """An installed eagleops works in an empty folder, on the embedded box."""
    inventory = load()

    assert Path(inventory.file) == Path(str(resources.files("eagleops") / "hosts.yaml"))
    assert inventory.target().name == "sim"


def test_the_folder_s_own_file_comes_before_the_package_s(folder) -> None:
    """It is named as the user would name it."""
    (folder / "hosts.yaml").write_text(TEXT)

    assert load().file == "hosts.yaml"


def test_the_variable_comes_before_the_folder(folder, monkeypatch) -> None:
    """$EAGLEOPS_INVENTORY names a file anywhere."""
    (folder / "hosts.yaml").write_text(TEXT)
    (folder / "other.yaml").write_text("hosts: {other: {transport: local}}\n")
    monkeypatch.setenv("EAGLEOPS_INVENTORY", str(folder / "other.yaml"))

    assert find() == folder / "other.yaml"
    assert list(load().hosts) == ["other"]
    assert list(load("hosts.yaml").hosts) == ["box"]


def test_a_missing_file_is_told(folder, monkeypatch) -> None:
    """With what names it, where that is not the command itself."""
    assert refusal(folder / "no.yaml") == f"{folder}/no.yaml: there is no such file"

    monkeypatch.setenv("EAGLEOPS_INVENTORY", "gone.yaml")
    with pytest.raises(InventoryError) as caught:
        load()
    assert str(caught.value) == "gone.yaml: there is no such file\nEAGLEOPS_INVENTORY names it."


def test_a_folder_is_no_inventory(folder) -> None:
    """What the machine says of it is handed on."""
    assert refusal(folder) == f"{folder}: it cannot be read: is a directory"


def test_another_encoding_is_told_with_its_line(folder) -> None:
    """Latin-1 is what editors of old leave behind."""
    file = folder / "hosts.yaml"
    file.write_bytes(b"hosts:\n  # f\xfcr alle\n  box: {transport: local}\n")

    assert refusal(file) == f"{file}:2: byte 0xfc is no UTF-8\nSave the file as UTF-8."


def test_a_byte_order_mark_is_no_part_of_the_text(folder) -> None:
    """Some editors write one."""
    file = folder / "hosts.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())

    assert list(load(file).hosts) == ["box"]


def test_carriage_returns_are_line_ends(folder) -> None:
    """A file from Windows reads the same."""
    file = folder / "hosts.yaml"
    file.write_bytes(b"hosts:\r\n  box:\r\n    transport: local\r\n")

    assert list(load(file).hosts) == ["box"]


def test_paths_are_relative_to_the_file(folder) -> None:
    """Wherever the command was started."""
    (folder / "etc").mkdir()
    file = folder / "etc" / "hosts.yaml"
    file.write_text("hosts: {box: {address: a, identity_file: keys/id}}\n")

    assert load(file).hosts["box"].identity_file == (folder / "etc" / "keys" / "id",)


NAMED = """
hosts: {box: {transport: local}, pve: {address: a}}
containers: {llm: {on: pve, vmid: 129}}
groups: {all: [box, llm]}
profiles:
  base: {abstract: true, engine: vllm}
  p: {extends: base}
"""


@pytest.fixture
def inventory(read):
    """An inventory without defaults."""
    return read(NAMED)


def test_a_target_is_a_host_or_a_container(inventory) -> None:
    """By one name space for both."""
    assert inventory.target("box").name == "box"
    assert inventory.target("llm").on == "pve"
    assert [target.name for target in inventory.targets("all")] == ["box", "llm"]
    assert [target.name for target in inventory.targets("box")] == ["box"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lml", "hosts.yaml: there is no host or container lml\nDid you mean llm?"),
        ("zzz", "hosts.yaml: there is no host or container zzz\nThere are box, pve, llm."),
        (
            "",
            (
                "hosts.yaml: there is no host or container of an empty name\n"
                "There are box, pve, llm."
            ),
        ),
        ("all", "hosts.yaml: all is a group of 2, not one machine\nName one of box, llm."),
        (
            None,
            (
                "hosts.yaml: no host is named, and defaults name none\n"
                "Say --host, or write `defaults: {host: NAME}` in that file."
            ),
        ),
    ],
)
def test_a_name_that_is_no_target_is_told(inventory, name, expected) -> None:
    """With the names there are."""
    with pytest.raises(InventoryError) as caught:
        inventory.target(name)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("q", ProfileError, "hosts.yaml: there is no profile q\nThere is only p."),
        (
            "",
            ProfileError,
            "hosts.yaml: there is no profile of an empty name\nThere is only p.",
        ),
        (
            "base",
            ProfileError,
            (
                "hosts.yaml:6: profile base is abstract: it is there to be extended\n"
                "Name one that extends it: p."
            ),
        ),
        (
            None,
            InventoryError,
            (
                "hosts.yaml: no profile is named, and defaults name none\n"
                "Say --profile, or write `defaults: {profile: NAME}` in that file."
            ),
        ),
    ],
)
def test_a_name_that_is_no_profile_is_told(inventory, name, kind, expected) -> None:
    """With the names there are."""
    with pytest.raises(kind) as caught:
        inventory.profile(name)
    assert str(caught.value) == expected


def test_the_ledger_stands_where_the_file_says(folder) -> None:
    """``ledger:`` is relative to hosts.yaml; without it the user's own place is meant."""
    (folder / "hosts.yaml").write_text(f"ledger: data/runs.db\n{TEXT}")

    assert load(folder / "hosts.yaml").ledger == folder / "data" / "runs.db"
    (folder / "hosts.yaml").write_text(TEXT)
    assert load(folder / "hosts.yaml").ledger is None


def test_a_ledger_that_is_no_path_is_told(folder) -> None:
    """With the line, as for every other value."""
    (folder / "bad.yaml").write_text(f"{TEXT}ledger: [a]\n")

    assert refusal(folder / "bad.yaml") == (
        f"{folder}/bad.yaml:2: ledger: expected a text, got a list"
    )
