"""When nights take place: by systemd's own reckoning, over a year, where clocks are changed."""

from __future__ import annotations

import itertools
import re
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from eagleops.errors import InventoryError
from eagleops.inventory.schedule import schedule
from eagleops.inventory.suite import SuiteEntry
from eagleops.workflows import timer_crontab
from eagleops.workflows.timer_notes import lost_nights
from eagleops.workflows.timer_units import Start

FROM = date(2027, 1, 1)
DAYS = 365
DEFAULT = SuiteEntry(name="default").schedule
ELAPSE = re.compile(r"(?:Next elapse|Iter\. #\d+): \w{3} (\S+ \S+) UTC")


def nights(systemd, text: str, count: int = DAYS) -> list[datetime]:
    """When systemd would start the first nights of 2027."""
    base = f"--base-time={FROM} 00:00:00"
    done = systemd.analyze("calendar", f"--iterations={count}", base, text)
    assert done.returncode == 0, done.stderr
    found = [datetime.fromisoformat(at) for at in ELAPSE.findall(done.stdout)]
    return [at.replace(tzinfo=timezone.utc) for at in found]


def missing_days(times: list[datetime], zone: str) -> list[date]:
    """The local days without a night, up to the last one; a day with two is an error."""
    days = [at.astimezone(ZoneInfo(zone)).date() for at in times]
    assert len(days) == len(set(days))
    span = (days[0] + timedelta(days=n) for n in range((days[-1] - days[0]).days))
    return [day for day in span if day not in set(days)]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_the_default_schedule_makes_each_night_of_a_year_once(systemd, zone: str) -> None:
    """Half past four is there once in every night, those of changed clocks included."""
    times = nights(systemd, f"{DEFAULT} {zone}")

    local = {at.astimezone(ZoneInfo(zone)).strftime("%H:%M") for at in times}
    assert len(times) == DAYS
    assert missing_days(times, zone) == []
    assert local == {"04:30"}
    assert list(lost_nights(DEFAULT, zone, FROM)) == []


@pytest.mark.parametrize(
    ("zone", "at", "lost"),
    [
        ("Europe/Berlin", "02:30", date(2027, 3, 28)),
        ("America/New_York", "02:30", date(2027, 3, 14)),
        ("Europe/Helsinki", "03:30", date(2027, 3, 28)),
        ("Europe/London", "01:30", date(2027, 3, 28)),
        ("Africa/Cairo", "00:30", date(2027, 4, 30)),
    ],
)
def test_a_night_of_a_skipped_time_is_lost_and_told(
    systemd, zone: str, at: str, lost: date
) -> None:
    """Systemd passes over a time that is not there, and the plan says which night that is."""
    times = nights(systemd, f"*-*-* {at}:00 {zone}")

    (told,) = lost_nights(f"*-*-* {at}:00", zone, FROM)
    assert missing_days(times, zone) == [lost]
    assert told == (
        f"On {lost} clocks are put forward past {at} ({zone}), and systemd makes no night of a "
        "time that is not there. 04:30 is there every night, in every time zone."
    )


@pytest.mark.parametrize(
    ("zone", "day"), [("Europe/Berlin", "2027-10-31"), ("America/New_York", "2027-11-07")]
)
def test_a_time_that_is_there_twice_makes_one_night(systemd, zone: str, day: str) -> None:
    """Half past two or half past one, when clocks are put back: the first of both is taken."""
    at = "02:30" if zone.startswith("Europe") else "01:30"
    times = nights(systemd, f"*-*-* {at}:00 {zone}")

    (taken,) = [t for t in times if str(t.astimezone(ZoneInfo(zone)).date()) == day]
    assert taken.astimezone(ZoneInfo(zone)).fold == 0


ZONES = (
    "Africa/Casablanca",
    "America/Havana",
    "America/Santiago",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Athens",
    "Pacific/Auckland",
    "UTC",
)


@settings(max_examples=15)
@given(st.sampled_from(ZONES), st.integers(0, 23), st.sampled_from((0, 15, 30, 59)))
def test_what_is_told_of_lost_nights_is_what_systemd_does(systemd, zone, hour, minute) -> None:
    """In whatever zone and at whatever time of day: the first lost night of a year, or none."""
    text = f"*-*-* {hour:02}:{minute:02}:00"

    told = [note.split()[1] for note in lost_nights(text, zone, FROM)]

    lost = missing_days(nights(systemd, f"{text} {zone}"), zone)
    assert told == [str(day) for day in lost[:1]]


def test_nothing_is_told_of_a_zone_that_nobody_knows() -> None:
    """A machine whose zone cannot be told, and one that is no name, lose no night in words."""
    assert [list(lost_nights(DEFAULT, zone, FROM)) for zone in ("", "No/Such", "../etc")] == [
        []
    ] * 3


def fields(text: str) -> str:
    """The crontab's fields of a schedule; empty where it has none."""
    lines = timer_crontab.crontab("x", text, Start(argv=("/x",), folder="/", environ={}))
    return " ".join(lines.splitlines()[-1].split()[:5]) if lines else ""


def is_schedule(text: str) -> bool:
    """Whether an inventory takes it."""
    try:
        schedule(text)
    except InventoryError:
        return False
    return True


def matches(line: str, at: datetime) -> bool:
    """Whether cron would start a line at that minute: crontab(5)."""
    values = (at.minute, at.hour, at.day, at.month, at.isoweekday() % 7)
    lowest = (0, 0, 1, 1, 0)

    def one(part: str, value: int, low: int) -> bool:
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = low if first == "*" else int(first)
        end = 99 if first == "*" else int(last or (first if not step or dash else 99))
        return start <= value <= end and (value - start) % int(step or 1) == 0

    return all(
        any(one(part, value, low) for part in field.split(","))
        for field, value, low in zip(line.split(), values, lowest, strict=True)
    )


DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def ranges(low: int, high: int) -> st.SearchStrategy[str]:
    """A component of a calendar event: a number, a range, a step or a list of them."""
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    one = st.one_of(
        number.map(str),
        pair.filter(lambda p: p[0] < p[1]).map(lambda p: f"{p[0]}..{p[1]}"),
        st.tuples(number, st.integers(1, 9)).map(lambda p: f"{p[0]}/{p[1]}"),
    )
    return st.lists(one, min_size=1, max_size=3).map(",".join)


weekdays = st.one_of(
    st.just(""),
    st.lists(st.sampled_from(DAY_NAMES), min_size=1, max_size=3, unique=True).map(",".join),
    st.tuples(st.integers(0, 6), st.integers(0, 6))
    .map(sorted)
    .map(lambda p: f"{DAY_NAMES[p[0]]}..{DAY_NAMES[p[1]]}"),
)


@settings(max_examples=40)
@example("", "*-*", "0", "0")
@given(
    weekdays,
    st.one_of(
        st.just("*-*"), ranges(1, 28).map(lambda d: f"*-{d}"), ranges(1, 12).map("{}-*".format)
    ),
    ranges(0, 23),
    ranges(0, 59),
)
def test_a_crontab_says_what_systemd_would_do(systemd, days, month_days, hours, minutes) -> None:
    """Each time that systemd names is one of cron's, and cron has none between them."""
    text = f"{days} *-{month_days} {hours}:{minutes} UTC".strip()
    assume(is_schedule(text))
    line = fields(text)
    if not line:
        assert days  # both weekdays and days of the month: cron takes either
        assert not month_days.endswith("*")
        return

    times = nights(systemd, text, 4)

    assert all(matches(line, at) for at in times)
    for earlier, later in itertools.pairwise(times):
        minutes_between = min(int((later - earlier).total_seconds() // 60) - 1, 3000)
        between = (earlier + timedelta(minutes=n + 1) for n in range(minutes_between))
        assert not any(matches(line, at) for at in between)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*-*-* 04:30:00", "30 4 * * *"),
        ("Mon..Fri 02:30", "30 2 * * 1,2,3,4,5"),
        ("Mon..Sun 02:30", "30 2 * * *"),
        ("Sat,Sun 4:05 Europe/Berlin", "5 4 * * 0,6"),
        ("daily", "0 0 * * *"),
        ("weekly UTC", "0 0 * * 1"),
        ("quarterly", "0 0 1 1,4,7,10 *"),
        ("0/6:15", "15 0-23/6 * * *"),
        ("8..18/2:0", "0 8-18/2 * * *"),
        ("*-1..3-05 4:0", "0 4 5 1-3 *"),
        ("2027-*-* 04:30", ""),
        ("*-*~1 04:30", ""),
        ("04:30:30", ""),
        ("04:30:00.5", ""),
        ("Mon *-*-1..7 04:30", ""),
    ],
)
def test_a_schedule_in_a_crontabs_fields(text: str, expected: str) -> None:
    """As cron writes it, and nothing where cron cannot say it."""
    assert schedule(text)
    assert fields(text) == expected
