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
_CRON_FIELDS = 5
_ENDS = 2
# More digits than any of them needs: a longer one is a mistake.
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_STEP = re.compile(r"0*[1-9][0-9]{0,8}")
_EXAMPLES = "For example '*-*-* 04:30:00', 'Mon..Fri 04:30', '*-*-* 04:30:00 Europe/Berlin'."


@attrs.frozen
class Schedule:
    """A calendar event, in its parts as they are written.

    Attributes:
        weekdays: ``Mon..Fri``; empty for every day.
        date: ``*-*-*``; empty for every day.
        time: ``04:30:00``; empty for midnight.
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
    if len(words) == _CRON_FIELDS and not any(":" in word for word in words):
        raise _no_schedule(text, "cron spells it so, systemd does not")
    parts: dict[str, str] = {}
    for word in words:
        part = _part_of(word)
        for problem in _PROBLEMS[part](word):
            raise _no_schedule(text, problem)
        if part in parts:
            raise _no_schedule(text, f"{word!r} stands in the wrong place")
        parts[part] = word
    if not parts:
        raise _no_schedule(text, "it names neither a day nor a time")
    if list(parts) != sorted(parts, key=_ORDER.index):
        raise _no_schedule(text, "weekdays, date, time and time zone stand in this order")
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


def _part_of(word: str) -> str:
    if ":" in word:
        return "time"
    return "weekdays" if re.search(r"[A-Za-z]", word) else "date"


def _weekday_problems(word: str) -> Iterator[str]:
    for one in word.removesuffix(",").split(","):
        days = [name.lower() for name in one.split("..")]
        if unknown := [name for name in days if name not in _DAY_NAMES]:
            yield f"there is no weekday {unknown[0]!r}"
        elif len(days) > _ENDS or sorted(days, key=_day_number) != days:
            yield f"{one} is no range: it begins with the earlier day of the week, Monday is first"


def _day_number(name: str) -> int:
    return next(number for number, day in enumerate(_DAYS) if day.startswith(name))


def _date_problems(word: str) -> Iterator[str]:
    fields = re.split(r"[-~]", word)
    if len(fields) not in {2, 3}:
        yield f"expected a date such as *-*-*, got {word!r}"
        return
    backwards = "~" in word
    if backwards and not re.search(r"~[^~-]*\Z", word):
        yield f"~ counts days from the month's end: *-*~1, not {word!r}"
    for year in fields[:-2]:
        yield from _YEAR.problems(year)
    yield from _MONTH.problems(fields[-2])
    yield from (_LAST_DAY if backwards else _DAY).problems(fields[-1])


def _time_problems(word: str) -> Iterator[str]:
    fields = word.split(":")
    if len(fields) not in {2, 3}:
        yield f"expected a time such as 04:30:00, got {word!r}"
        return
    for part, text in zip((_HOUR, _MINUTE, _SECOND), fields, strict=False):
        yield from part.problems(text)


@attrs.frozen
class _Component:
    """What may stand for one part of a date or a time.

    Attributes:
        fraction: Whether a number may have one.
        backwards: Whether steps go down, as from a month's end.
    """

    name: str
    lowest: int
    highest: int
    fraction: bool = False
    backwards: bool = False

    def problems(self, text: str) -> Iterator[str]:
        """What is wrong in a list of numbers, ranges ``1..5`` and steps ``0/15``; * is all."""
        for one in () if text == "*" else text.split(","):
            start, slash, step = one.partition("/")
            if start == "*":
                by = step or "15"
                yield f"* stands alone: {self.lowest}/{by} is every {by}th {self.name}"
                continue
            first, dots, last = start.partition("..")
            ends = (first, last) if dots else (first,)
            wrong = [problem for end in ends for problem in self._number(end)]
            yield from wrong
            if slash and not _STEP.fullmatch(step):
                yield f"{step!r} is no step: {self.lowest}/15 is every 15th {self.name}"
            elif not wrong and dots and float(first) > float(last):
                yield f"{one} is no range: it ends before it begins"
            elif not wrong and slash and not dots and not self._holds_two(float(first), int(step)):
                yield f"{one} never comes to a second {self.name}"

    def _number(self, text: str) -> Iterator[str]:
        if not _NUMBER.fullmatch(text) or (not self.fraction and "." in text):
            yield f"{text!r} is no {self.name}"
        elif not self.lowest <= float(text) < self.highest + 1:
            yield f"there is no {self.name} {text}: they go from {self.lowest} to {self.highest}"

    def _holds_two(self, first: float, step: int) -> bool:
        second = first - step if self.backwards else first + step
        return self.lowest <= second < self.highest + 1


_YEAR = _Component("year", 1970, 2199)
_MONTH = _Component("month", 1, 12)
_DAY = _Component("day", 1, 31)
_LAST_DAY = _Component("day before a month's end", 1, 28, backwards=True)
_HOUR = _Component("hour", 0, 23)
_MINUTE = _Component("minute", 0, 59)
_SECOND = _Component("second", 0, 59, fraction=True)
_PROBLEMS = {"weekdays": _weekday_problems, "date": _date_problems, "time": _time_problems}


def _no_schedule(text: str, problem: str) -> InventoryError:
    return InventoryError(problem=f"{text!r} is no calendar event: {problem}", way_out=_EXAMPLES)
