"""When the nightly checks run: a systemd timer, or a crontab's lines where there is no systemd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import attrs

if TYPE_CHECKING:
    from pathlib import Path

    from eagleops.inventory import Inventory
    from eagleops.inventory.suite import SuiteEntry
    from eagleops.transport.base import Transport
    from eagleops.view import View

Manager = Literal["system", "user", "cron"]


@attrs.frozen
class TimerPlan:
    """What would be installed, and what has been.

    Attributes:
        suite: Its name.
        manager: Who starts it: systemd for the machine (``system``), systemd for one person
            (``user``), or ``cron``, into which nothing is installed.
        schedule: As the suite has it.
        files: The text of each unit by the path where it belongs; empty for cron.
        crontab: The lines for a crontab; empty where the schedule cannot be said in one.
        next_utc: The next nights, RFC 3339; empty where nothing here tells.
        notes: What the reader should know: secrets that a timer has not, nights that have no
            such time of day.
        installed: None for a plan, else whether it is in place now.
    """

    suite: str
    manager: Manager
    schedule: str
    files: dict[Path, str]
    crontab: str = ""
    next_utc: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    installed: bool | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing that was to be done was left undone."""
        return self.installed is not False

    def to_dict(self) -> dict[str, Any]:
        """As the ``timer`` object of ``nightly --install-timer --json``."""
        raise NotImplementedError

    def view(self) -> View:
        """The units and where they go."""
        raise NotImplementedError


def plan(inventory: Inventory, suite: SuiteEntry) -> TimerPlan:
    """The timer of a suite, for whoever runs this, as this program was started.

    Raises:
        UsageError: if a path cannot be written in a unit, or systemd refuses the schedule.
        ProfileError: if a profile of the suite cannot be resolved.
    """
    raise NotImplementedError


def install(planned: TimerPlan, *, here: Transport | None = None) -> TimerPlan:
    """Writes the units and has systemd start the timer; again is no harm.

    For cron nothing is written: ``installed`` is False, and the plan's lines are shown.

    Raises:
        CheckFailed: if a file cannot be written, or systemctl refuses.
    """
    raise NotImplementedError
