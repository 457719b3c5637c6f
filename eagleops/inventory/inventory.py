"""An inventory: what hosts.yaml says, and the names that commands use for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from eagleops.errors import InventoryError, ProfileError
from eagleops.inventory.entries import ContainerEntry, Defaults, HostEntry
from eagleops.inventory.problems import nearest
from eagleops.inventory.suite import SuiteEntry
from eagleops.profile import Profile, ProfileEntry, filled, resolve
from eagleops.profile.values import frozen_mapping

DEFAULT_SUITE = "default"
_NAMELESS = "of an empty name"


@attrs.frozen(kw_only=True)
class Inventory:
    """Hosts, containers, groups and profiles.

    Attributes:
        file: The file as it was named.
        defaults: The host and the profile of a command that names none.
        profiles: As they are written; :meth:`profile` puts one together.
        ledger: Where runs are recorded; None for the user's own place.
        nightly: Suites of nightly checks.
    """

    file: str
    defaults: Defaults = attrs.field(factory=Defaults)
    hosts: Mapping[str, HostEntry] = attrs.field(factory=dict, converter=frozen_mapping)
    containers: Mapping[str, ContainerEntry] = attrs.field(factory=dict, converter=frozen_mapping)
    groups: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, converter=frozen_mapping)
    profiles: Mapping[str, ProfileEntry] = attrs.field(factory=dict, converter=frozen_mapping)
    ledger: Path | None = None
    nightly: Mapping[str, SuiteEntry] = attrs.field(factory=dict, converter=frozen_mapping)

    def target(self, name: str | None = None) -> HostEntry | ContainerEntry:
        """The host or container of that name; the default host without a name.

        Raises:
            InventoryError: if there is none, or the name is a group's.
        """
        wanted = self.defaults.host if name is None else name
        if wanted is None:
            raise self._unnamed("host")
        if wanted in self.groups:
            raise InventoryError(
                problem=f"{wanted} is a group of {len(self.groups[wanted])}, not one machine",
                where=self.file,
                way_out=f"Name one of {', '.join(self.groups[wanted])}.",
                file=self.file,
            )
        entry = self.hosts.get(wanted) or self.containers.get(wanted)
        if entry is None:
            raise InventoryError(
                problem=f"there is no host or container {wanted or _NAMELESS}",
                where=self.file,
                way_out=nearest(wanted, (*self.hosts, *self.containers), "There are"),
                file=self.file,
            )
        return entry

    def targets(self, name: str | None = None) -> tuple[HostEntry | ContainerEntry, ...]:
        """The members of the group of that name; else :meth:`target` alone.

        Raises:
            InventoryError: as :meth:`target`.
        """
        if name is not None and name in self.groups:
            return tuple(self.target(member) for member in self.groups[name])
        return (self.target(name),)

    def way_in(self, entry: HostEntry | ContainerEntry) -> HostEntry | ContainerEntry:
        """Whose connection leads there: a container without an address has its host's."""
        if isinstance(entry, ContainerEntry) and not entry.by_ssh:
            return self.hosts[entry.on]
        return entry

    def profile(self, name: str | None = None) -> Profile:
        """The profile of that name with everything that it inherits; the default without one.

        Raises:
            ProfileError: if there is none of that name, or it is abstract.
            InventoryError: if none is named and there is no default.
        """
        wanted = self.defaults.profile if name is None else name
        if wanted is None:
            raise self._unnamed("profile")
        if wanted not in self.profiles:
            raise ProfileError(
                problem=f"there is no profile {wanted or _NAMELESS}",
                where=self.file,
                way_out=nearest(wanted, self.profile_names(), "There are"),
                profile=wanted,
            )
        if self.profiles[wanted].abstract:
            children = [
                child for child in self.profile_names() if wanted in self.profiles[child].extends
            ]
            raise ProfileError(
                problem=f"profile {wanted} is abstract: it is there to be extended",
                where=self.profiles[wanted].origin or self.file,
                way_out=f"Name one that extends it: {', '.join(children)}." if children else "",
                profile=wanted,
            )
        return filled(resolve(wanted, self.profiles))

    def profile_names(self) -> tuple[str, ...]:
        """The profiles that can be launched, in the order of the file."""
        return tuple(name for name, entry in self.profiles.items() if not entry.abstract)

    def suite(self, name: str | None = None) -> SuiteEntry:
        """The suite of that name; without one, ``default``, or else the only one.

        Raises:
            InventoryError: if there is none, or none is named and there are several.
        """
        if name is None and len(self.nightly) == 1:
            return next(iter(self.nightly.values()))
        wanted = DEFAULT_SUITE if name is None else name
        if wanted in self.nightly:
            return self.nightly[wanted]
        if not self.nightly:
            problem = "there is no suite of nightly checks"
            way_out = (
                "Write one in that file: nightly: {default: {hosts: [HOST], profiles: [PROFILE]}}"
            )
        elif name is None:
            problem = f"no suite is named, and none is called {DEFAULT_SUITE}"
            way_out = f"Say --suite: {', '.join(self.nightly)}."
        else:
            problem = f"there is no suite {wanted or _NAMELESS}"
            way_out = nearest(wanted, self.nightly, "There are")
        raise InventoryError(
            problem=problem, where=self.file, way_out=way_out, file=self.file, key="nightly"
        )

    def suite_targets(self, suite: SuiteEntry) -> tuple[HostEntry | ContainerEntry, ...]:
        """The machines of a suite, each once, in its order; the default host if it names none.

        Raises:
            InventoryError: as :meth:`target`.
        """
        found = [one for name in suite.hosts or (None,) for one in self.targets(name)]
        return tuple({one.name: one for one in found}.values())

    def _unnamed(self, what: str) -> InventoryError:
        return InventoryError(
            problem=f"no {what} is named, and defaults name none",
            where=self.file,
            way_out=f"Say --{what}, or write `defaults: {{{what}: NAME}}` in that file.",
            file=self.file,
            key=f"defaults.{what}",
        )
