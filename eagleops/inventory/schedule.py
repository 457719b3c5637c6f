"""A suite's schedule: a calendar event as systemd.time(7) has it, seen to be one."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator
from functools import cache

import attrs

from eagleops.errors import InventoryError
from eagleops.inventory.problems import nearest

SHORTHANDS = (
    "minutely",
    "hourly",
    "daily",
    "weekly",
    "monthly",
    "quarterly",
    "semiannually",
    "yearly",
)
_OTHER_WORDS = {"annually": "yearly", "semi-annually": "semiannually"}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY_NAMES = {*_DAYS, *(day[:3] for day in _DAYS)}
_YEARS, _MONTHS, _MONTH_DAYS = (1970, 2199), (1, 12), (1, 31)
_HOURS, _MINUTES = (0, 23), (0, 59)
_NUMBER = re.compile(r"\d+(\.\d{1,6})?")
_EXAMPLES = "For example '*-*-* 04:30:00', 'Mon..Fri 04:30', '*-*-* 04:30:00 Europe/Berlin'."


@attrs.frozen
class Schedule:
    """A calendar event, in its parts as they are written.

    Attributes:
        weekdays: ``Mon..Fri``; empty for every day.
        date: ``*-*-*``; empty for every day.
        time: ``02:30:00``; empty for midnight.
        shorthand: ``daily``, in the place of all three; empty otherwise.
        zone: ``Europe/Berlin`` or ``UTC``; empty for the machine's own time.
    """

    weekdays: str = ""
    date: str = ""
    time: str = ""
    shorthand: str = ""
    zone: str = ""


def schedule(text: str) -> Schedule:
    """The parts of a calendar event.

    Source: systemd.time(7), "Calendar events".

    Raises:
        InventoryError: if it is none, or a time zone is unknown.
    """
    words = text.split()
    zone = ""
    if words and _is_zone(words[-1]):
        zone = words.pop()
    if len(words) == 1 and words[0].lower() in {*SHORTHANDS, *_OTHER_WORDS}:
        word = words[0].lower()
        return Schedule(shorthand=_OTHER_WORDS.get(word, word), zone=zone)
    parts: dict[str, str] = {}
    for word in words:
        part = _part_of(word, bool(parts))
        if part in parts or list(parts) != sorted(parts, key=_ORDER.index):
            raise _no_schedule(text, f"{word!r} stands in the wrong place")
        parts[part] = word
    if not parts or list(parts) != sorted(parts, key=_ORDER.index):
        raise _no_schedule(text, "weekdays, date, time and time zone stand in this order")
    for part, word in parts.items():
        for problem in _PROBLEMS[part](word):
            raise _no_schedule(text, problem)
    return Schedule(zone=zone, **parts)


@cache
def zones() -> frozenset[str]:
    """The time zones that are known here; empty where there is no zone database."""
    return frozenset(zoneinfo.available_timezones())


def _is_zone(word: str) -> bool:
    """Whether a word can only be a time zone.

    Raises:
        InventoryError: if it looks like one, and there is none of that name.
    """
    if word == "UTC" or word in zones():
        return True
    looks = re.fullmatch(r"[A-Z][A-Za-z]+(/[A-Za-z0-9_+-]+)+|[A-Z]{3,5}", word)
    if looks is None or word.lower() in _DAY_NAMES:
        return False
    if not zones():
        return "/" in word
    raise InventoryError(problem=f"there is no time zone {word}", way_out=_zone_hint(word))


def _zone_hint(word: str) -> str:
    near = nearest(word, zones(), "")
    return near if near.startswith("Did") else "Write it as in the zone database: Europe/Berlin."


_ORDER = ("weekdays", "date", "time")


def _part_of(word: str, later: bool) -> str:
    if ":" in word:
        return "time"
    if re.search(r"[A-Za-z]", word) and not later:
        return "weekdays"
    return "date"


def _weekday_problems(word: str) -> Iterator[str]:
    for name in re.split(r",|\.\.", word.rstrip(",")):
        if name.lower() not in _DAY_NAMES:
            yield f"there is no weekday {name!r}"


def _date_problems(word: str) -> Iterator[str]:
    fields = re.split(r"[-~]", word)
    if len(fields) not in {2, 3}:
        yield f"expected a date such as *-*-*, got {word!r}"
        return
    if "~" in word and not re.search(r"~[^~-]*\Z", word):
        yield f"~ counts days from the month's end: *-*~1, not {word!r}"
    for year in fields[:-2]:
        yield from _component(year, "year", _YEARS)
    yield from _component(fields[-2], "month", _MONTHS)
    yield from _component(fields[-1], "day", _MONTH_DAYS)


def _time_problems(word: str) -> Iterator[str]:
    fields = word.split(":")
    if len(fields) not in {2, 3}:
        yield f"expected a time such as 02:30:00, got {word!r}"
        return
    yield from _component(fields[0], "hour", _HOURS)
    yield from _component(fields[1], "minute", _MINUTES)
    for second in fields[2:]:
        yield from _component(second, "second", _MINUTES, fraction=True)


def _component(
    text: str, what: str, limits: tuple[int, int], *, fraction: bool = False
) -> Iterator[str]:
    """What is wrong in a list of numbers, ranges ``1..5`` and steps ``0/15``; * is all."""
    lowest, highest = limits
    for one in text.split(","):
        start, slash, step = one.partition("/")
        if slash and not (step.isdecimal() and int(step) > 0):
            yield f"{step!r} is no step: */15 is every 15th {what}"
        first, dots, last = start.partition("..")
        if first == "*" and not dots:
            continue
        for number in (first, last) if dots else (first,):
            if not _NUMBER.fullmatch(number) or (not fraction and "." in number):
                yield f"{number!r} is no {what}"
            elif not lowest <= float(number) <= highest + (0.999999 if fraction else 0):
                yield f"there is no {what} {number}: they go from {lowest} to {highest}"


_PROBLEMS = {"weekdays": _weekday_problems, "date": _date_problems, "time": _time_problems}


def _no_schedule(text: str, problem: str) -> InventoryError:
    return InventoryError(problem=f"{text!r} is no calendar event: {problem}", way_out=_EXAMPLES)
