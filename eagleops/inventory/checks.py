"""What only the whole file shows: names that name nothing, entries at odds with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eagleops.engines import ENGINES
from eagleops.errors import ProfileError
from eagleops.inventory.document import Items, Node, Table
from eagleops.inventory.entries import ContainerEntry, HostEntry
from eagleops.inventory.inventory import Inventory
from eagleops.inventory.places import at, entries, misnamed, no_such, within, written
from eagleops.inventory.problems import Problem
from eagleops.profile import ProfileEntry, filled, lineage, resolve

_BY_SSH = ("host_keys", "known_hosts", "identity_file", "ssh_config", "via", "connect_timeout_s")


def problems(inventory: Inventory, tree: Table) -> Iterator[Problem]:
    """Everything that is wrong between the entries of ``inventory``, which ``tree`` was read to."""
    yield from _names(tree)
    yield from _defaults(inventory, tree)
    for host in inventory.hosts.values():
        yield from _host(host, at(tree, "hosts", host.name), inventory)
    for container in inventory.containers.values():
        yield from _container(container, at(tree, "containers", container.name), inventory)
    yield from _groups(inventory, tree)
    yield from _profiles(inventory, tree)


def _names(tree: Table) -> Iterator[Problem]:
    taken: dict[str, Node] = {}
    for section in ("hosts", "containers", "groups", "profiles"):
        for name, node in entries(tree, section).items():
            yield from misnamed(name, node)
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
        yield no_such(at(tree, "defaults", "host"), "host or container", host, targets)
    profile = inventory.defaults.profile
    if profile and profile not in inventory.profile_names():
        node = at(tree, "defaults", "profile")
        if profile in inventory.profiles:
            yield Problem(node.line, node.key, f"profile {profile} is abstract: nothing to launch")
        else:
            yield no_such(node, "profile", profile, inventory.profile_names())


def _host(host: HostEntry, node: Node, inventory: Inventory) -> Iterator[Problem]:
    given = set(written(node))
    if host.transport == "ssh" and not host.address:
        yield Problem(
            node.line,
            node.key,
            "a host that is reached by SSH needs an address",
            "Write `address: user@host`, or `transport: local` for this machine.",
        )
    if host.transport != "ssh":
        for name in sorted(given & {"address", *_BY_SSH}):
            where = within(node, name)
            yield Problem(where.line, where.key, f"transport {host.transport} has no use for it")
    if host.transport != "sim" and "sim" in given:
        where = within(node, "sim")
        yield Problem(where.line, where.key, f"transport {host.transport} has no use for it")
    yield from _via(host.via, node, inventory)


def _container(container: ContainerEntry, node: Node, inventory: Inventory) -> Iterator[Problem]:
    if container.on not in inventory.hosts:
        yield no_such(within(node, "on"), "host", container.on, inventory.hosts)
    if container.kind == "pct" and container.vmid is None:
        yield Problem(
            node.line,
            node.key,
            "a container of kind pct needs a vmid",
            "Write `vmid: 129`, or `kind: docker`, lxc or incus.",
        )
    unused = "name" if container.kind == "pct" else "vmid"
    if unused in written(node):
        where, use = within(node, unused), "vmid" if container.kind == "pct" else "name"
        yield Problem(
            where.line, where.key, f"kind {container.kind} has no use for it", f"It goes by {use}."
        )
    if not container.address:
        for name in sorted(set(written(node)) & set(_BY_SSH)):
            where = within(node, name)
            yield Problem(
                where.line,
                where.key,
                "without an address of its own it is reached through its host",
                f"Write it at host {container.on}, or give the container an address.",
            )
    yield from _via(container.via, node, inventory)


def _via(via: str | None, node: Node, inventory: Inventory) -> Iterator[Problem]:
    where = within(node, "via")
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
        group = at(tree, "groups", name)
        nodes = group.items if isinstance(group, Items) else ()
        seen: set[str] = set()
        for member, node in zip(members, nodes, strict=True):
            if member not in targets:
                yield no_such(node, "host or container", member, targets)
            if member in seen:
                yield Problem(node.line, node.key, f"{member} stands in the group twice")
            seen.add(member)


def _profiles(inventory: Inventory, tree: Table) -> Iterator[Problem]:
    sound = set()
    for name, entry in inventory.profiles.items():
        node = at(tree, "profiles", name)
        unknown = [parent for parent in entry.extends if parent not in inventory.profiles]
        for parent in unknown:
            yield no_such(within(node, "extends"), "profile", parent, inventory.profiles)
        if entry.engine is not None and entry.engine not in ENGINES:
            yield no_such(within(node, "engine"), "engine", entry.engine, ENGINES)
        try:
            lineage(name, inventory.profiles)
        except ProfileError as circle:
            # A circle is told once, where it closes; who only leads into it is in order.
            if circle.profile == name and not unknown:
                where = within(node, "extends")
                yield Problem(where.line, where.key, circle.problem)
        else:
            sound.add(name)
    templated = any("${" in repr(entry) for entry in inventory.profiles.values())
    for name in inventory.profile_names():
        if name in sound and templated:
            yield from _values(name, inventory, tree)
        if name in sound and not _names_engine(name, inventory.profiles):
            node = at(tree, "profiles", name)
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
        node = at(tree, "profiles", profile.sources.get(key, name))
        for part in key.split(".", 1):
            node = within(node, part)
        yield Problem(node.line, node.key, unnamed.problem, unnamed.way_out)
