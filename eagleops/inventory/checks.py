"""What only the whole file shows: names that name nothing, entries at odds with themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.engines import ENGINES
from eagleops.errors import ProfileError
from eagleops.inventory.document import Items, Node, Scalar, Table, child_key
from eagleops.inventory.entries import ContainerEntry, HostEntry
from eagleops.inventory.inventory import Inventory
from eagleops.inventory.problems import Problem, nearest
from eagleops.profile import ProfileEntry, filled, lineage, resolve

# It becomes a folder, part of a log's name and a word of commands.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_BY_SSH = ("host_keys", "known_hosts", "identity_file", "ssh_config", "via", "connect_timeout_s")


def problems(inventory: Inventory, tree: Table) -> Iterator[Problem]:
    """Everything that is wrong between the entries of ``inventory``, which ``tree`` was read to."""
    yield from _names(tree)
    yield from _defaults(inventory, tree)
    for host in inventory.hosts.values():
        yield from _host(host, _at(tree, "hosts", host.name), inventory)
    for container in inventory.containers.values():
        yield from _container(container, _at(tree, "containers", container.name), inventory)
    yield from _groups(inventory, tree)
    yield from _profiles(inventory, tree)


def _names(tree: Table) -> Iterator[Problem]:
    taken: dict[str, Node] = {}
    for section in ("hosts", "containers", "groups", "profiles"):
        for name, node in _entries(tree, section).items():
            if not NAME.match(name):
                yield Problem(
                    node.line,
                    node.key,
                    f"{name!r} cannot be a name",
                    "Letters, digits, dots, dashes and underscores, 64 at most; a letter or a "
                    "digit first.",
                )
            if section == "profiles":
                continue
            if name in taken:
                other = taken[name]
                yield Problem(
                    node.line, node.key, f"{other.key} in line {other.line} has that name too"
                )
            taken[name] = node


def _defaults(inventory: Inventory, tree: Table) -> Iterator[Problem]:
    targets = (*inventory.hosts, *inventory.containers)
    if (host := inventory.defaults.host) and host not in targets:
        yield _no_such(_at(tree, "defaults", "host"), "host or container", host, targets)
    profile = inventory.defaults.profile
    if profile and profile not in inventory.profile_names():
        node = _at(tree, "defaults", "profile")
        if profile in inventory.profiles:
            yield Problem(node.line, node.key, f"profile {profile} is abstract: nothing to launch")
        else:
            yield _no_such(node, "profile", profile, inventory.profile_names())


def _host(host: HostEntry, node: Node, inventory: Inventory) -> Iterator[Problem]:
    given = set(_written(node))
    if host.transport == "ssh" and not host.address:
        yield Problem(
            node.line,
            node.key,
            "a host that is reached by SSH needs an address",
            "Write `address: user@host`, or `transport: local` for this machine.",
        )
    if host.transport != "ssh":
        for name in sorted(given & {"address", *_BY_SSH}):
            where = _in(node, name)
            yield Problem(where.line, where.key, f"transport {host.transport} has no use for it")
    if host.transport != "sim" and "sim" in given:
        where = _in(node, "sim")
        yield Problem(where.line, where.key, f"transport {host.transport} has no use for it")
    yield from _via(host.via, node, inventory)


def _container(container: ContainerEntry, node: Node, inventory: Inventory) -> Iterator[Problem]:
    if container.on not in inventory.hosts:
        yield _no_such(_in(node, "on"), "host", container.on, inventory.hosts)
    if container.kind == "pct" and container.vmid is None:
        yield Problem(
            node.line,
            node.key,
            "a container of kind pct needs a vmid",
            "Write `vmid: 129`, or `kind: docker`, lxc or incus.",
        )
    unused = "name" if container.kind == "pct" else "vmid"
    if unused in _written(node):
        where, use = _in(node, unused), "vmid" if container.kind == "pct" else "name"
        yield Problem(
            where.line, where.key, f"kind {container.kind} has no use for it", f"It goes by {use}."
        )
    if not container.address:
        for name in sorted(set(_written(node)) & set(_BY_SSH)):
            where = _in(node, name)
            yield Problem(
                where.line,
                where.key,
                "without an address of its own it is reached through its host",
                f"Write it at host {container.on}, or give the container an address.",
            )
    yield from _via(container.via, node, inventory)


def _via(via: str | None, node: Node, inventory: Inventory) -> Iterator[Problem]:
    where = _in(node, "via")
    way = [node.key.partition(".")[2]]
    while via is not None and via in inventory.hosts:
        way.append(via)
        if inventory.hosts[via].transport != "ssh":
            yield Problem(where.line, where.key, f"host {via} is not reached by SSH")
        if via in way[:-1]:
            problem = f"the way leads in a circle: {' -> '.join(way)}"
            yield Problem(where.line, where.key, problem)
            return
        via = inventory.hosts[via].via


def _groups(inventory: Inventory, tree: Table) -> Iterator[Problem]:
    targets = (*inventory.hosts, *inventory.containers)
    for name, members in inventory.groups.items():
        group = _at(tree, "groups", name)
        nodes = group.items if isinstance(group, Items) else ()
        seen: set[str] = set()
        for member, node in zip(members, nodes, strict=True):
            if member not in targets:
                yield _no_such(node, "host or container", member, targets)
            if member in seen:
                yield Problem(node.line, node.key, f"{member} stands in the group twice")
            seen.add(member)


def _profiles(inventory: Inventory, tree: Table) -> Iterator[Problem]:
    sound = set()
    for name, entry in inventory.profiles.items():
        node = _at(tree, "profiles", name)
        unknown = [parent for parent in entry.extends if parent not in inventory.profiles]
        for parent in unknown:
            yield _no_such(_in(node, "extends"), "profile", parent, inventory.profiles)
        if entry.engine is not None and entry.engine not in ENGINES:
            yield _no_such(_in(node, "engine"), "engine", entry.engine, ENGINES)
        try:
            lineage(name, inventory.profiles)
        except ProfileError as circle:
            # A circle is told once, where it closes; who only leads into it is in order.
            if circle.profile == name and not unknown:
                where = _in(node, "extends")
                yield Problem(where.line, where.key, circle.problem)
        else:
            sound.add(name)
    templated = any("${" in repr(entry) for entry in inventory.profiles.values())
    for name in inventory.profile_names():
        if name in sound and templated:
            yield from _values(name, inventory, tree)
        if name in sound and not _names_engine(name, inventory.profiles):
            node = _at(tree, "profiles", name)
            yield Problem(
                node.line,
                node.key,
                "neither it nor a profile that it extends names an engine",
                f"Write `engine:` ({', '.join(ENGINES)}), or `abstract: true` if it is only there "
                "to be extended.",
            )


def _names_engine(name: str, profiles: Mapping[str, ProfileEntry]) -> bool:
    named = False
    for ancestor in lineage(name, profiles):
        entry = profiles[ancestor]
        named = entry.engine is not None or (named and "engine" not in entry.removed)
    return named


def _values(name: str, inventory: Inventory, tree: Table) -> Iterator[Problem]:
    profile = resolve(name, inventory.profiles)
    try:
        filled(profile)
    except ProfileError as unnamed:
        key = unnamed.where.partition(f"profiles.{name}.")[2]
        node = _at(tree, "profiles", profile.sources.get(key, name))
        for part in key.split(".", 1):
            node = _in(node, part)
        yield Problem(node.line, node.key, unnamed.problem, unnamed.way_out)


def _no_such(node: Node, what: str, name: str, known: Any) -> Problem:
    return Problem(
        node.line, node.key, f"there is no {what} {name}", nearest(name, known, "There are")
    )


def _entries(tree: Table, section: str) -> Mapping[str, Node]:
    node = tree.get(section)
    return node if isinstance(node, Table) else {}


def _written(node: Node) -> Mapping[str, Node]:
    if not isinstance(node, Table):
        return {}
    return {
        name: value
        for name, value in node.items()
        if not (isinstance(value, Scalar) and value.kind == "null")
    }


def _at(tree: Table, section: str, name: str) -> Node:
    return _entries(tree, section).get(name) or Scalar(child_key(section, name), 0, name)


def _in(node: Node, name: str) -> Node:
    return (node.get(name) if isinstance(node, Table) else None) or node
