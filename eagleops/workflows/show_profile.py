"""One profile: as it is written, or with everything that it inherits and where that stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from eagleops.engines import describe
from eagleops.errors import ProfileError
from eagleops.inventory import Inventory
from eagleops.profile import Profile
from eagleops.profile.entry import MERGED, REPLACED
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.written import handed_on, scalar


@attrs.frozen
class ProfileReport:
    """A profile, key by key.

    Attributes:
        resolved: Whether what it inherits is shown too.
        command: What a launch would start, secrets replaced; empty where nothing can be.
    """

    profile: Profile
    resolved: bool
    command: str

    @property
    def ok(self) -> bool:
        """Always: a profile that cannot be read is an error."""
        return True

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Key, value and place of each; secrets replaced."""
        shown = self.profile.to_dict()
        for field in (*REPLACED, *MERGED):
            values = shown[field] if field in MERGED else {"": shown[field]}
            for name, value in values.items():
                key = f"{field}.{name}" if name else field
                source = self.profile.sources.get(key)
                if source is None or not (self.resolved or source == self.profile.name):
                    continue
                yield key, handed_on(value) if name else scalar(value), self._place(key)

    def _place(self, key: str) -> str:
        return self.profile.place(key).removesuffix(f".{key}")

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``show-profile --json`` document's body."""
        rows = [{"key": key, "value": value, "where": where} for key, value, where in self.rows()]
        body = {"ok": True, "host": None, "profile": self.profile.to_dict(), "values": rows}
        return {**body, "resolved": self.resolved, "starts": self.command}

    def view(self) -> View:
        """A row a key, and what would be started."""
        columns = (Column("key", wrap=False), Column("value"), Column("where"))
        title = f"{self.profile.where}" + (" (resolved)" if self.resolved else "")
        notes = (Text(self.command, Tone.DIM),) if self.command and self.resolved else ()
        return View((Table(columns, tuple(self.rows()), title=title),), notes=notes)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def show_profile(
    inventory: Inventory, name: str | None = None, *, resolved: bool = False
) -> ProfileReport:
    """The profile ``name``; the default one without a name.

    Raises:
        ProfileError: if there is none of that name, or it is abstract.
        InventoryError: if none is named and there is no default.
    """
    profile = inventory.profile(name)
    try:
        command = describe(profile, profile.python or "python3")
    except ProfileError as error:
        command = f"Nothing can be started of it: {error.problem}"
    return ProfileReport(profile, resolved, command)
