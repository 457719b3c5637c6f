"""What an inventory holds, for ``eagleops hosts``. Asks no machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from eagleops.inventory import ContainerEntry, HostEntry, Inventory
from eagleops.profile import Profile
from eagleops.view import Column, Table, Text, View


@attrs.frozen
class Listing:
    """Hosts, containers, groups and profiles."""

    inventory: Inventory
    profiles: tuple[Profile, ...]

    @property
    def ok(self) -> bool:
        """Always: an inventory that cannot be read is an error."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The listing as the ``hosts --json`` document's body."""
        inventory = self.inventory
        return {
            "ok": True,
            "host": inventory.defaults.host,
            "file": str(inventory.file),
            "defaults": attrs.asdict(inventory.defaults),
            "hosts": [_host_dict(host) for host in inventory.hosts.values()],
            "containers": [_container_dict(one) for one in inventory.containers.values()],
            "groups": {name: list(members) for name, members in inventory.groups.items()},
            "profiles": [_profile_dict(profile) for profile in self.profiles],
        }

    def view(self) -> View:
        """A table of machines, one of profiles."""
        defaults = self.inventory.defaults
        machines = [
            (_marked(host.name, defaults.host), host.transport, host.address or "", host.python)
            for host in self.inventory.hosts.values()
        ] + [
            (
                _marked(one.name, defaults.host),
                f"{one.kind} {one.identifier} on {one.on}",
                one.address or "",
                one.python,
            )
            for one in self.inventory.containers.values()
        ]
        profiles = [
            (
                _marked(profile.name, defaults.profile),
                profile.engine,
                profile.model or "",
                str(profile.port or ""),
                f"{len(profile.env)} variables, {len(profile.args)} flags",
            )
            for profile in self.profiles
        ]
        groups = [(name, ", ".join(members)) for name, members in self.inventory.groups.items()]
        tables = [
            _table("Machines", ("name", "way in", "address", "python"), machines),
            _table("Profiles", ("name", "engine", "model", "port", "sets"), profiles),
        ]
        if groups:
            tables.append(_table("Groups", ("name", "members"), groups))
        return View(tuple(tables), Text(f"{self.inventory.file} (* default)"))

    def _repr_html_(self) -> str:
        return self.view().to_html()


def listing(inventory: Inventory) -> Listing:
    """What ``inventory`` holds.

    Raises:
        ProfileError: if a profile in it cannot be resolved.
    """
    return Listing(inventory, tuple(map(inventory.profile, inventory.profile_names())))


def _marked(name: str, default: str | None) -> str:
    return f"{name} *" if name == default else name


def _table(title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(tuple(map(Column, headings)), tuple(rows), title=title)


def _host_dict(host: HostEntry) -> dict[str, Any]:
    return {
        "name": host.name,
        "transport": host.transport,
        "address": host.address,
        "python": host.python,
    }


def _container_dict(container: ContainerEntry) -> dict[str, Any]:
    return {
        "name": container.name,
        "on": container.on,
        "kind": container.kind,
        "id": container.identifier,
        "address": container.address,
        "python": container.python,
    }


def _profile_dict(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "engine": profile.engine,
        "model": profile.model,
        "port": profile.port,
    }
