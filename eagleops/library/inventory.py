"""An inventory with its machines."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from eagleops import inventory as inventories
from eagleops.inventory import Inventory
from eagleops.library.host import Host
from eagleops.machine import Fleet
from eagleops.profile import Profile

if TYPE_CHECKING:
    from eagleops.library.nightly import Nights


@attrs.define(eq=False)
class Library:
    """hosts.yaml, and the hosts, containers and profiles in it.

    As a context manager it closes its connections at the end.
    """

    inventory: Inventory = attrs.field(repr=lambda inventory: repr(inventory.file))
    _fleet: Fleet = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._fleet = Fleet(self.inventory)

    def host(self, name: str | None = None) -> Host:
        """The host or container of that name; the default one without a name.

        Nothing is connected before the host is first asked something.

        Raises:
            InventoryError: if there is none of that name.
        """
        return Host(self._fleet.machine(name), self.inventory.ledger, self.inventory)

    def profile(self, name: str | None = None) -> Profile:
        """The profile of that name, resolved; the default one without a name.

        Raises:
            ProfileError: if there is none of that name, or it is abstract.
        """
        return self.inventory.profile(name)

    def nightly(self, suite: str | None = None) -> Nights:
        """The nightly checks of that suite; of ``default``, or the only one, without a name.

        Raises:
            InventoryError: if there is none of that name.
        """
        from eagleops.library.nightly import Nights

        return Nights(self.inventory, self.inventory.suite(suite), self._fleet)

    def close(self) -> None:
        """Ends every session and connection. Launched servers go on."""
        self._fleet.close()

    def __enter__(self) -> Library:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def load(path: str | Path | None = None) -> Library:
    """Reads an inventory.

    Args:
        path: A hosts.yaml. Without one: $EAGLEOPS_INVENTORY, then ./hosts.yaml, then the
            embedded box alone.

    Raises:
        InventoryError: with file, line and key.
    """
    return Library(inventories.load(path))
