"""When the nightly checks run: a systemd timer, or a crontab's lines where there is no systemd."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import attrs

from eagleops import whole_file
from eagleops.errors import CheckFailed, UsageError
from eagleops.inventory import Inventory
from eagleops.inventory.loading import VARIABLE, shipped
from eagleops.inventory.suite import SuiteEntry
from eagleops.transport.base import Completed, Transport
from eagleops.transport.local import LocalTransport
from eagleops.workflows import timer_units as units
from eagleops.workflows.timer_crontab import crontab
from eagleops.workflows.timer_notes import notes, secret_files
from eagleops.workflows.timer_plan import TimerPlan
from eagleops.workflows.timer_surroundings import Surroundings

__all__ = ["TimerPlan", "install", "plan"]

NIGHTS = 3
LIMIT_S = 30.0
# A program that is not there, as a shell tells it.
_NOT_FOUND = 127
_NIGHT = re.compile(r"^(?!Normalized).*?(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC$", re.MULTILINE)


def plan(
    inventory: Inventory,
    suite: SuiteEntry,
    *,
    around: Surroundings | None = None,
    here: Transport | None = None,
) -> TimerPlan:
    """The timer of a suite, started as this program was: same interpreter, files and variables.

    Args:
        inventory: Its file is named by its absolute path.
        suite: Whose schedule it is.
        around: Who asks; this process without.
        here: The way to this machine's systemd.

    Raises:
        UsageError: if a path cannot be written in a unit, systemd refuses the schedule, or a
            crontab cannot say it where there is nothing else.
        ProfileError: if a profile of the suite cannot be resolved.
    """
    around = around or Surroundings.here()
    systemd = here or LocalTransport()
    start = _start(inventory, suite, around)
    lines = crontab(suite.name, suite.schedule, start)
    folder = _folder(around, systemd)
    told = tuple(_notes(inventory, suite, around, folder))
    if not around.systemd:
        if not lines:
            raise UsageError(
                problem=f"a crontab cannot say {suite.schedule!r}, and no systemd runs here",
                where=suite.origin,
                way_out="Write a schedule without years, seconds, or weekdays and days together.",
            )
        return TimerPlan(
            suite=suite.name,
            manager="cron",
            schedule=suite.schedule,
            crontab=lines,
            notes=told,
        )
    return TimerPlan(
        suite=suite.name,
        manager="system" if around.root else "user",
        schedule=suite.schedule,
        unit=f"{units.unit_name(suite.name)}.timer",
        files=_files(inventory, suite, start, folder, root=around.root),
        crontab=lines,
        next_utc=_nights(suite, systemd),
        notes=told,
    )


def install(planned: TimerPlan, *, here: Transport | None = None) -> TimerPlan:
    """Writes the units and has systemd start the timer; again is no harm.

    For cron nothing is written: ``installed`` is False, and the plan's lines are shown.

    Raises:
        CheckFailed: if a file cannot be written, or systemctl refuses.
    """
    if planned.manager == "cron":
        return attrs.evolve(planned, installed=False)
    systemd = here or LocalTransport()
    for path, text in planned.files.items():
        _write(path, text)
    of = () if planned.manager == "system" else ("--user",)
    _asked(systemd, "systemctl", *of, "daemon-reload")
    _asked(systemd, "systemctl", *of, "enable", planned.unit)
    # A timer that runs already is started anew, so that it takes another schedule.
    _asked(systemd, "systemctl", *of, "restart", planned.unit)
    return attrs.evolve(planned, installed=True)


def _start(inventory: Inventory, suite: SuiteEntry, around: Surroundings) -> units.Start:
    file = around.folder / Path(inventory.file).expanduser()
    argv = (str(around.interpreter), "-m", "eagleops", "nightly", f"--suite={suite.name}")
    return units.Start(
        argv=(*argv, "--quiet"),
        folder=around.folder,
        environ={VARIABLE: os.path.normpath(file), **around.kept()},
        secrets=around.secrets if around.systemd else None,
    )


def _files(
    inventory: Inventory, suite: SuiteEntry, start: units.Start, folder: Path, *, root: bool
) -> dict[Path, str]:
    name = units.unit_name(suite.name)
    service = units.service(
        suite.name,
        start,
        # What ran before is started again past the night's limit, and may take a launch's.
        limit_s=suite.limit_s + (suite.ready_limit_s if suite.restore else 0),
        system=root,
        sandboxed=root and _is_elsewhere(inventory, suite),
    )
    timer = units.timer(suite.name, suite.schedule, system=root)
    return {folder / f"{name}.service": service, folder / f"{name}.timer": timer}


def _folder(around: Surroundings, systemd: Transport) -> Path:
    """Where the units go: the first place in which the systemd that is to start them looks."""
    best, *others = around.units
    if not around.systemd or not others:
        return best
    argv = ("systemctl", "--user", "show", "--property=UnitPath", "--value")
    looks = systemd.run(argv, timeout_s=LIMIT_S).stdout.decode("utf-8", "replace")
    return next((place for place in (best, *others) if str(place) in looks), best)


def _is_elsewhere(inventory: Inventory, suite: SuiteEntry) -> bool:
    """Whether all machines of a suite are reached by SSH."""
    return all(inventory.way_in(one).by_ssh for one in inventory.suite_targets(suite))


def _notes(
    inventory: Inventory, suite: SuiteEntry, around: Surroundings, folder: Path
) -> Iterator[str]:
    cron = not around.systemd
    secrets = ""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        secrets = around.secrets.read_text("utf-8")
    if os.path.normpath(inventory.file) == str(shipped()):
        yield f"No hosts.yaml was named: it is the one of the package, {inventory.file}."
    yield from notes(
        inventory,
        suite,
        around,
        cron=cron,
        today=date.today(),  # noqa: DTZ011 - the machine's own day
        secrets=secrets,
        unread=[file for file in secret_files(inventory, suite) if not _readable(file)],
    )
    before = folder / f"{units.unit_name(suite.name)}.service"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        file = os.path.normpath(around.folder / inventory.file)
        if not cron and units.assignment(VARIABLE, file) not in before.read_text("utf-8"):
            yield f"{before} is there for another hosts.yaml, and is replaced."


def _readable(file: str) -> bool:
    try:
        return os.access(Path(file).expanduser(), os.R_OK)
    except RuntimeError:  # nobody's home is named so
        return False


def _nights(suite: SuiteEntry, systemd: Transport) -> tuple[str, ...]:
    """The next nights, by systemd's own reckoning."""
    argv = ("systemd-analyze", "calendar", f"--iterations={NIGHTS}", suite.schedule)
    done = systemd.run(argv, timeout_s=LIMIT_S)
    if done.exit_status == _NOT_FOUND:
        return ()
    if done.exit_status != 0:
        raise UsageError(
            problem=f"systemd refuses the schedule {suite.schedule!r}: {_words(done)}",
            where=suite.origin,
            way_out="systemd.time(7) describes it; `systemd-analyze calendar` tries it.",
        )
    found = _NIGHT.findall(done.stdout.decode("utf-8", "replace"))
    return tuple(f"{day}T{at}Z" for day, at in found[:NIGHTS])


def _asked(systemd: Transport, *argv: str) -> None:
    done = systemd.run(argv, timeout_s=LIMIT_S)
    if done.exit_status == 0:
        return
    way_out = "The units are written; the same command again does the rest."
    if b"connect to bus" in done.stderr:
        way_out = (
            "systemd of this account does not run: log in directly (not by su), or "
            "loginctl enable-linger, and set XDG_RUNTIME_DIR=/run/user/$(id -u)."
        )
    raise CheckFailed(problem=f"{' '.join(argv)}: {_words(done)}", way_out=way_out)


def _words(done: Completed) -> str:
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return said[-1] if said else f"it ended with status {done.exit_status}"


def _write(path: Path, text: str) -> None:
    """As a whole or not at all, for systemd reads it at any time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole_file.write(path, text.encode("utf-8"), mode=0o644)
    except OSError as error:
        raise CheckFailed(
            problem=f"it cannot be written: {error.strerror or error}",
            where=str(path),
            way_out="Root installs for the machine, everybody else for themselves.",
        ) from error
