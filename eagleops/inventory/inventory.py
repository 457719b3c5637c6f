"""An inventory: what hosts.yaml says, and the names that commands use for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from eagleops.errors import InventoryError, ProfileError
from eagleops.inventory.entries import ContainerEntry, Defaults, HostEntry
from eagleops.inventory.problems import nearest
from eagleops.profile import Profile, ProfileEntry, filled, resolve
from eagleops.profile.values import frozen_mapping


@attrs.frozen(kw_only=True)
class Inventory:
    """Hosts, containers, groups and profiles.

    Attributes:
        file: The file as it was named.
        defaults: The host and the profile of a command that names none.
        profiles: As they are written; :meth:`profile` puts one together.
        ledger: Where runs are recorded; None for the user's own place.
    """

    file: str
    defaults: Defaults = attrs.field(factory=Defaults)
    hosts: Mapping[str, HostEntry] = attrs.field(factory=dict, converter=frozen_mapping)
    containers: Mapping[str, ContainerEntry] = attrs.field(factory=dict, converter=frozen_mapping)
    groups: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict, converter=frozen_mapping)
    profiles: Mapping[str, ProfileEntry] = attrs.field(factory=dict, converter=frozen_mapping)
    ledger: Path | None = None

    def target(self, name: str | None = None) -> HostEntry | ContainerEntry:
        """The host or container of that name; the default host without a name.

        Raises:
            InventoryError: if there is none, or the name is a group's.
        """
        wanted = name or self.defaults.host
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
                problem=f"there is no host or container {wanted}",
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

    def profile(self, name: str | None = None) -> Profile:
        """The profile of that name with everything that it inherits; the default without one.

        Raises:
            ProfileError: if there is none of that name, or it is abstract.
            InventoryError: if none is named and there is no default.
        """
        wanted = name or self.defaults.profile
        if wanted is None:
            raise self._unnamed("profile")
        if wanted not in self.profiles:
            raise ProfileError(
                problem=f"there is no profile {wanted}",
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

    def _unnamed(self, what: str) -> InventoryError:
        return InventoryError(
            problem=f"no {what} is named, and defaults name none",
            where=self.file,
            way_out=f"Say --{what}, or write `defaults: {{{what}: NAME}}` in that file.",
            file=self.file,
            key=f"defaults.{what}",
        )
