"""Reading an inventory: which file, its text, its tree, its entries."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import attrs

from eagleops.errors import InventoryError
from eagleops.inventory import checks, readers
from eagleops.inventory.document import Node, Scalar, Table, read
from eagleops.inventory.entries import ContainerEntry, Defaults, HostEntry
from eagleops.inventory.env_files import with_env_files
from eagleops.inventory.inventory import Inventory
from eagleops.inventory.problems import Problem, Wrong, inventory_error, nearest
from eagleops.inventory.structure import section, structured
from eagleops.inventory.suite import SuiteEntry
from eagleops.inventory.suite_checks import suite_problems
from eagleops.profile import ProfileEntry

VARIABLE = "EAGLEOPS_INVENTORY"
HERE = "hosts.yaml"
_DEFAULT_PYTHON = attrs.fields(HostEntry).python.default

Target = TypeVar("Target", bound=HostEntry | ContainerEntry)


def load(path: str | Path | None = None) -> Inventory:
    """Reads an inventory.

    Args:
        path: A hosts.yaml. Without one: $EAGLEOPS_INVENTORY, then ./hosts.yaml, then the one
            that comes with the package.

    Raises:
        InventoryError: with file, line and key; all that is wrong in the file in one error.
    """
    file = Path(path) if path is not None else find()
    return parse(_text(file), str(file), folder=file.parent)


def find() -> Path:
    """The inventory of a command that names none."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    if Path(HERE).exists():
        return Path(HERE)
    return shipped()


def shipped() -> Path:
    """The inventory that comes with the package."""
    return Path(str(resources.files("eagleops") / HERE))


def parse(text: str, file: str = HERE, *, folder: Path | None = None) -> Inventory:
    """An inventory from its text.

    Args:
        text: YAML.
        file: Its name, for messages.
        folder: What relative paths in it are relative to; the current folder without one.

    Raises:
        InventoryError: as :func:`load`.
    """
    base = Path() if folder is None else folder
    try:
        tree = read(text)
    except Wrong as wrong:
        raise inventory_error(file, wrong.problems) from None
    problems = list(suite_problems(tree))
    try:
        inventory = _with_env_files(_inventory(tree, file), base)
    except Wrong as wrong:
        raise inventory_error(file, [*wrong.problems, *problems]) from None
    if problems := [*problems, *checks.problems(inventory, tree)]:
        raise inventory_error(file, problems)
    return attrs.evolve(
        inventory,
        hosts={n: _settled_host(h, inventory, base) for n, h in inventory.hosts.items()},
        containers={n: _settled(c, inventory, base) for n, c in inventory.containers.items()},
        ledger=inventory.ledger and _whole(inventory.ledger, base),
        nightly={n: _settled_suite(s, base) for n, s in inventory.nightly.items()},
    )


def _with_env_files(inventory: Inventory, folder: Path) -> Inventory:
    entries = inventory.profiles.items()
    read_in = readers.gathered(partial(_profile, name, entry, folder) for name, entry in entries)
    return attrs.evolve(inventory, profiles=dict(read_in))


def _profile(name: str, entry: ProfileEntry, folder: Path) -> tuple[str, ProfileEntry]:
    return name, with_env_files(entry, folder)


def _text(file: Path) -> str:
    try:
        data = file.expanduser().read_bytes()
    except FileNotFoundError:
        raise InventoryError(
            problem="there is no such file",
            where=str(file),
            way_out=f"{VARIABLE} names it." if os.environ.get(VARIABLE) == str(file) else "",
            file=str(file),
        ) from None
    except OSError as error:
        problem = f"it cannot be read: {(error.strerror or str(error)).lower()}"
        raise InventoryError(problem=problem, where=str(file), file=str(file)) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02x} is no UTF-8"
        way_out = "Save the file as UTF-8."
        raise inventory_error(str(file), [Problem(line, "", problem, way_out)]) from None


def _inventory(tree: Table, file: str) -> Inventory:
    names = dict.fromkeys((*_SECTIONS, *tree))
    parts = dict(readers.gathered(partial(_part, tree, name, file) for name in names))
    if not parts["hosts"]:
        raise Wrong(Problem(0, "hosts", "there is no host", "It needs at least one."))
    return Inventory(file=file, **parts)


def _part(tree: Table, name: str, file: str) -> tuple[str, Any]:
    node = tree.get(name)
    if name in _SECTIONS:
        return name, _SECTIONS[name](node, file)
    way_out = nearest(name, _SECTIONS, "There are")
    raise Wrong(Problem(tree[name].line, name, f"there is no section {name}", way_out))


def _defaults(node: Node | None, file: str) -> Defaults:
    del file
    return Defaults() if node is None else structured(node, Defaults)


def _groups(node: Node | None, file: str) -> dict[str, tuple[str, ...]]:
    del file
    if node is None or (isinstance(node, Scalar) and node.kind in {"blank", "null"}):
        return {}
    members = readers.list_of(readers.text)
    return dict(readers.gathered(readers.pairs(node, lambda name, value: (name, members(value)))))


def _ledger(node: Node | None, file: str) -> Path | None:
    del file
    return None if node is None else readers.path(node)


_SECTIONS: Mapping[str, Callable[[Node | None, str], Any]] = {
    "defaults": _defaults,
    "hosts": lambda node, file: section(node, HostEntry, file),
    "containers": lambda node, file: section(node, ContainerEntry, file),
    "groups": _groups,
    "profiles": lambda node, file: section(node, ProfileEntry, file),
    "ledger": _ledger,
    "nightly": lambda node, file: section(node, SuiteEntry, file),
}


def _settled(entry: Target, inventory: Inventory, folder: Path) -> Target:
    """``entry`` with its paths made whole, and the hosts on its way named by their addresses."""
    changes: dict[str, Any] = {"via": _way(entry.via, inventory)}
    for name in ("known_hosts", "identity_file"):
        files = getattr(entry, name)
        changes[name] = files and tuple(_whole(file, folder) for file in files)
    changes["ssh_config"] = entry.ssh_config and _whole(entry.ssh_config, folder)
    return attrs.evolve(entry, **changes)


def _settled_host(host: HostEntry, inventory: Inventory, folder: Path) -> HostEntry:
    if host.transport != "sim":
        return _settled(host, inventory, folder)
    directory = host.sim.directory and _whole(host.sim.directory, folder)
    # The stand-ins need what eagleops itself was installed with.
    python = sys.executable if host.python == _DEFAULT_PYTHON else host.python
    return attrs.evolve(host, sim=attrs.evolve(host.sim, directory=directory), python=python)


def _settled_suite(suite: SuiteEntry, folder: Path) -> SuiteEntry:
    return attrs.evolve(
        suite,
        reports=suite.reports and _whole(suite.reports, folder),
        prometheus=suite.prometheus and _whole(suite.prometheus, folder),
    )


def _whole(path: Path, folder: Path) -> Path:
    return folder / path.expanduser()


def _way(via: str | None, inventory: Inventory) -> str | None:
    """Jump hosts as ProxyJump has them: the nearest first."""
    hops: list[str] = []
    while via is not None and via in inventory.hosts:
        host = inventory.hosts[via]
        hops.insert(0, host.address or via)
        via = host.via
    if via is not None:
        hops.insert(0, via)
    return ",".join(hops) or None
