"""A recorded run as a profile, for ``eagleops show --as-profile``."""

from __future__ import annotations

from typing import Any

import attrs

from eagleops.view import Text, View


@attrs.frozen
class Recipe:
    """A run as the text of a hosts.yaml."""

    host: str
    run_id: int
    text: str

    @property
    def ok(self) -> bool:
        """Always: a run that cannot be written out is an error."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON."""
        return {"ok": True, "host": self.host, "run_id": self.run_id, "yaml": self.text}

    def view(self) -> View:
        """The text as it is."""
        return View(conclusion=Text(self.text.rstrip("\n")))
