"""What somebody should know before a timer is installed: what a night will lack, or lose."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

from eagleops.inventory import Inventory
from eagleops.inventory.schedule import schedule
from eagleops.inventory.suite import SuiteEntry
from eagleops.profile import SecretReference
from eagleops.workflows.timer_surroundings import API_KEY, Surroundings

_YEAR_DAYS = 366
_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=")


def notes(
    inventory: Inventory,
    suite: SuiteEntry,
    around: Surroundings,
    *,
    cron: bool,
    today: date,
    secrets: str = "",
    unread: Collection[str] = (),
) -> Iterator[str]:
    """A sentence or two each.

    Args:
        inventory: The suite's.
        suite: That is to be started.
        around: Where.
        cron: Whether cron starts it.
        today: The nights from here on are looked at, a year of them.
        secrets: The text of the file that a timer takes secrets from, where it is there.
        unread: Of :func:`secret_files`, those that cannot be read.
    """
    references = tuple(_references(inventory, suite))
    yield from _variables(references, around, set(_NAME.findall(secrets)), cron=cron)
    for file in sorted(unread):
        yield f"{file} is to hold a secret, and cannot be read. Write it: you alone may read it."
    if commands := sorted({r.place for r in references if r.kind == "cmd"}):
        yield (
            f"A secret comes from a command ({', '.join(commands)}), which runs without a "
            "terminal and without anybody to answer it."
        )
    for name in around.left_out():
        yield (f"{name} holds a password, and is left out. {_place_for(name, around, cron=cron)}")
    if around.environ.get("SSH_AUTH_SOCK") and _by_ssh(inventory, suite):
        yield (
            "An ssh-agent holds keys here, and at night there is none: the hosts need a key that "
            "can be read without a passphrase (identity_file in hosts.yaml, or ssh_config)."
        )
    if not cron and not around.root and not around.lingers:
        yield (
            f"The timer stops when {around.account} logs out, unless their systemd lingers: "
            f"loginctl enable-linger {around.account}"
        )
    zone = schedule(suite.schedule).zone
    if cron and zone:
        yield (
            "CRON_TZ is heeded by cronie (Fedora, RHEL, Arch), and counts for all lines below it. "
            "Debian's and Ubuntu's cron passes over it: there the time is the machine's own"
            f"{f' ({around.zone})' if around.zone else ''}."
        )
    if not cron:
        yield from lost_nights(suite.schedule, zone or around.zone, today)


def secret_files(inventory: Inventory, suite: SuiteEntry) -> frozenset[str]:
    """The files that hold the suite's secrets, as hosts.yaml names them."""
    return frozenset(r.place for r in _references(inventory, suite) if r.kind == "file")


def lost_nights(text: str, zone: str, today: date) -> Iterator[str]:
    """The nights of the next year that have no such time of day.

    systemd passes over a time that is skipped when clocks are put forward
    (https://github.com/systemd/systemd/issues/5595); one that is there twice it takes once, the
    first. cron makes up for a skipped one: cron(8).

    Args:
        text: The schedule.
        zone: By its name; nothing is known of one that is not there.
        today: The first day to look at.
    """
    try:
        clock = zoneinfo.ZoneInfo(zone)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return
    for at in _times(schedule(text).time):
        for day in (today + timedelta(days=n) for n in range(_YEAR_DAYS)):
            local = datetime.combine(day, at, tzinfo=clock)
            there = local.astimezone(timezone.utc).astimezone(clock)
            if there.replace(tzinfo=None) != local.replace(tzinfo=None):
                yield (
                    f"On {day} clocks are put forward past {at:%H:%M} ({zone}), and systemd makes "
                    "no night of a time that is not there. 04:30 is there every night, in every "
                    "time zone."
                )
                break


def _times(text: str) -> tuple[time, ...]:
    """The times of day that are named one by one."""
    hour, _, minute = (text or "0:0").partition(":")
    hours, minutes = hour.split(","), minute.partition(":")[0].split(",")
    if not all(one.isdecimal() for one in (*hours, *minutes)):
        return ()
    return tuple(time(int(h), int(m)) for h in hours for m in minutes)


def _variables(
    references: Sequence[SecretReference], around: Surroundings, there: set[str], *, cron: bool
) -> Iterator[str]:
    names = {reference.place for reference in references if reference.kind == "env"}
    if around.environ.get(API_KEY):
        names.add(API_KEY)
    for name in sorted(names - there):
        where = _place_for(name, around, cron=cron)
        yield f"{name} is a secret, and a timer has no variables. {where}"


def _place_for(name: str, around: Surroundings, *, cron: bool) -> str:
    if cron:
        return "Name a file that you alone may read: {secret: file:PATH}."
    return (
        f"Write {name}=... in {around.secrets} (chmod 600), or name a file: {{secret: file:PATH}}."
    )


def _references(inventory: Inventory, suite: SuiteEntry) -> Iterator[SecretReference]:
    for webhook in suite.notify:
        yield from _within(webhook.url)
        yield from _within(webhook.headers)
    for check in suite.profiles:
        profile = inventory.profile(check.profile)
        yield from _within(profile.env)
        yield from _within(profile.args)


def _within(value: Any) -> Iterator[SecretReference]:
    if isinstance(value, SecretReference):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _within(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _within(item)


def _by_ssh(inventory: Inventory, suite: SuiteEntry) -> bool:
    return any(inventory.way_in(one).by_ssh for one in inventory.suite_targets(suite))
