"""What a timer would be, or is: a result, with the units' text."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import attrs

from eagleops.view import Column, Table, Text, Tone, View

Manager = Literal["system", "user", "cron"]
_NOT_INSTALLED = "Nothing was installed: no systemd runs here. Add the lines above to a crontab."


@attrs.frozen(kw_only=True)
class TimerPlan:
    """What would be installed, or has been.

    Attributes:
        suite: Its name.
        manager: Who starts it: systemd for the machine (``system``), systemd for one person
            (``user``), or ``cron``, into which nothing is installed.
        schedule: As the suite has it.
        unit: The timer's name; empty for cron.
        files: The text of each unit by the path where it belongs; empty for cron.
        crontab: The lines for a crontab; empty where the schedule cannot be said in one.
        next_utc: The next nights, RFC 3339; empty where nothing here tells.
        notes: What the reader should know.
        installed: None for a plan, else whether it is in place now.
    """

    suite: str
    manager: Manager
    schedule: str
    unit: str = ""
    files: dict[Path, str] = attrs.field(factory=dict)
    crontab: str = ""
    next_utc: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    installed: bool | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing that was to be done was left undone."""
        return self.installed is not False

    @property
    def text(self) -> str | None:
        """The units, or the crontab's lines, to be read and copied; None once installed."""
        if self.installed:
            return None
        told = [f"# {path}\n{text}" for path, text in self.files.items()]
        if self.manager == "cron":
            told = [f"# For the end of your crontab (crontab -e):\n{self.crontab}"]
        comments = [f"# Note: {note}" for note in self.notes]
        if self.next_utc:
            comments.insert(0, f"# Next nights: {', '.join(self.next_utc)}")
        if self.installed is False:
            comments.append(f"# {_NOT_INSTALLED}")
        elif self.files:
            comments.append("# Nothing is installed yet: leave --dry-run out.")
        return "\n".join((*told, *comments)).rstrip("\n") + "\n"

    def to_dict(self) -> dict[str, Any]:
        """As ``nightly --install-timer --json`` tells it."""
        return {
            "ok": self.ok,
            "suite": self.suite,
            "manager": self.manager,
            "schedule": self.schedule,
            "unit": self.unit,
            "files": {str(path): text for path, text in self.files.items()},
            "crontab": self.crontab,
            "next_utc": list(self.next_utc),
            "notes": list(self.notes),
            "installed": self.installed,
        }

    def view(self) -> View:
        """The files, and when it starts."""
        rows = tuple((str(path), "written" if self.installed else "") for path in self.files)
        tables = (Table((Column("unit"), Column("")), rows),) if rows else ()
        said = [Text(note, Tone.WARNING) for note in self.notes]
        if self.crontab and self.manager == "cron":
            said.insert(0, Text(self.crontab))
        return View(tables, self._conclusion(), tuple(said))

    def _conclusion(self) -> Text:
        when = f"next: {self.next_utc[0]}" if self.next_utc else self.schedule
        if self.installed:
            return Text(f"{self.unit} is on; {when}", Tone.GOOD)
        if self.installed is False:
            return Text(_NOT_INSTALLED, Tone.BAD)
        return Text(f"not installed yet; {when}")

    def _repr_html_(self) -> str:
        return self.view().to_html()
