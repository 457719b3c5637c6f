"""A pasted command, as a command of the tool shows it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import UsageError
from eagleops.pasted import Imported, commented, import_command
from eagleops.view import Text, View

STANDARD_INPUT = "-"


@attrs.frozen
class ImportReport:
    """A profile, and what was wrong in the command that it was made of."""

    imported: Imported

    @property
    def ok(self) -> bool:
        """Always: what no profile can be made of is an error."""
        return True

    @property
    def text(self) -> str:
        """A hosts.yaml, the findings in front of it as comments."""
        return commented(self.imported.findings) + self.imported.yaml

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``import-command --json`` document's body."""
        one = self.imported
        return {
            "ok": True,
            "host": one.target.name,
            "address": one.target.address or None,
            "container": list(one.target.container) if one.target.container else None,
            "profile": one.profile.to_dict(),
            "argv": list(one.argv),
            "env": dict(one.env),
            "findings": [finding.to_dict() for finding in one.findings],
            "yaml": one.yaml,
        }

    def view(self) -> View:
        """The text as it is."""
        return View(conclusion=Text(self.text.rstrip("\n")))


def import_file(file: str, *, name: str | None = None) -> ImportReport:
    """Makes a profile of the command in ``file``.

    Args:
        file: A path, or ``-`` for standard input.
        name: The profile's.

    Raises:
        UsageError: if the file or the command cannot be read, or it starts no server.
    """
    if file == STANDARD_INPUT:
        data = sys.stdin.buffer.read()
    else:
        try:
            data = Path(file).expanduser().read_bytes()
        except OSError as error:
            problem = f"it cannot be read: {(error.strerror or str(error)).lower()}"
            raise UsageError(problem=problem, where=file) from None
    text = data.decode("utf-8", "replace")
    return ImportReport(import_command(text, file=file, name=name))
