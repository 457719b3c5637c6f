"""What an inventory holds, for ``eagleops hosts``. Asks no machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from eagleops.inventory import ContainerEntry, HostEntry, Inventory, SuiteEntry
from eagleops.inventory.inventory import DEFAULT_SUITE
from eagleops.profile import Profile
from eagleops.view import Column, Table, Text, View


@attrs.frozen
class Listing:
    """Hosts, containers, groups, profiles and suites of nightly checks."""

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
            "suites": [_suite_dict(suite, inventory) for suite in inventory.nightly.values()],
        }

    def view(self) -> View:
        """A table of machines, one of profiles; of groups and of suites where there are any."""
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
        if self.inventory.nightly:
            suites = [
                _suite_row(suite, self.inventory) for suite in self.inventory.nightly.values()
            ]
            headings = ("name", "hosts", "profiles", "commands", "at")
            tables.append(_table("Nightly checks", headings, suites))
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


def _suite_row(suite: SuiteEntry, inventory: Inventory) -> tuple[str, ...]:
    named = len(inventory.nightly) == 1 or suite.name == DEFAULT_SUITE
    return (
        _marked(suite.name, suite.name if named else None),
        ", ".join(suite.hosts) or inventory.suite_targets(suite)[0].name,
        ", ".join(one.profile for one in suite.profiles),
        ", ".join(suite.commands),
        suite.schedule,
    )


def _suite_dict(suite: SuiteEntry, inventory: Inventory) -> dict[str, Any]:
    return {
        "name": suite.name,
        "hosts": [target.name for target in inventory.suite_targets(suite)],
        "profiles": [attrs.asdict(one) for one in suite.profiles],
        "commands": list(suite.commands),
        "busy": suite.busy,
        "restore": suite.restore,
        "limit_s": suite.limit_s,
        "schedule": suite.schedule,
    }


def _profile_dict(profile: Profile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "engine": profile.engine,
        "model": profile.model,
        "port": profile.port,
    }
