"""A suite's schedule as lines of a crontab, where there is no systemd."""

from __future__ import annotations

import re
import shlex

from eagleops.inventory.schedule import Schedule, schedule
from eagleops.workflows.timer_units import Start, writable

_SHORTHANDS = {
    "minutely": "* * * * *",
    "hourly": "0 * * * *",
    "daily": "0 0 * * *",
    "weekly": "0 0 * * 1",
    "monthly": "0 0 1 * *",
    "quarterly": "0 0 1 1,4,7,10 *",
    "semiannually": "0 0 1 1,7 *",
    "yearly": "0 0 1 1 *",
}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MINUTES, _HOURS, _MONTH_DAYS, _MONTHS = 59, 23, 31, 12
_EVERY = "*"


def crontab(suite: str, text: str, start: Start) -> str:
    """The lines; empty where no crontab can say the schedule.

    Args:
        suite: Its name.
        text: The schedule, a calendar event of systemd.time(7).
        start: How a night is started.

    Raises:
        UsageError: if a path or a value cannot stand on one line.
    """
    said = schedule(text)
    fields = _fields(said)
    if fields is None:
        return ""
    comment = f"# eagleops nightly checks, suite {suite}"
    zone = (f"CRON_TZ={said.zone}",) if said.zone else ()
    return "\n".join((comment, *zone, f"{fields} {_line(start)}")) + "\n"


def _line(start: Start) -> str:
    """The command as sh reads it, once cron has: it takes % for a line's end."""
    words = [f"{name}={shlex.quote(value)}" for name, value in start.environ.items()]
    words += map(shlex.quote, start.argv)
    line = f"cd {shlex.quote(str(start.folder))} && {' '.join(words)}"
    return writable(line).replace("%", "\\%")


def _fields(said: Schedule) -> str | None:
    if said.shorthand:
        return _SHORTHANDS[said.shorthand]
    hour, minute, *second = (said.time or "0:0").split(":")
    year, month, day = ["*", *re.split("-", said.date or "*-*")][-3:]
    if "~" in said.date or not _only_zero(second) or set(year) - {_EVERY}:
        return None
    days_of_week = _weekdays(said.weekdays)
    days = _component(day, _MONTH_DAYS)
    if _EVERY not in (days, days_of_week):
        return None  # cron takes either, systemd both
    found = (
        _component(minute, _MINUTES),
        _component(hour, _HOURS),
        days,
        _component(month, _MONTHS),
        days_of_week,
    )
    return " ".join(found)


def _only_zero(second: list[str]) -> bool:
    return all(re.fullmatch(r"0+(\.0+)?", one) for one in second)


def _component(text: str, highest: int) -> str:
    """Lists, ranges ``1..5`` and steps ``0/15`` as cron writes them."""
    return ",".join(_one(one, highest) for one in text.split(","))


def _one(text: str, highest: int) -> str:
    start, slash, step = text.partition("/")
    first, dots, last = start.partition("..")
    if first == _EVERY:
        return f"*/{int(step)}" if slash else _EVERY
    if slash:
        return f"{int(first)}-{int(last) if dots else highest}/{int(step)}"
    return f"{int(first)}-{int(last)}" if dots else str(int(first))


def _weekdays(text: str) -> str:
    """As numbers from 0, Sunday: names in lists are no cron's everywhere."""
    days: set[int] = set()
    for one in filter(None, text.lower().split(",")):
        first, _, last = one.partition("..")
        at, end = (_DAYS.index(name[:3]) for name in (first, last or first))
        days.add(at)
        while at != end:
            at = (at + 1) % len(_DAYS)
            days.add(at)
    every = not days or len(days) == len(_DAYS)
    return _EVERY if every else ",".join(map(str, sorted(days)))
