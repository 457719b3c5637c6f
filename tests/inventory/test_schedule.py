"""A suite's schedule is a calendar event of systemd's, and is seen to be one without systemd."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.errors import InventoryError
from eagleops.inventory.schedule import SHORTHANDS, Schedule, schedule

PARTS = {
    "*-*-* 04:30:00": Schedule(date="*-*-*", time="04:30:00"),
    "Mon..Fri 4:30": Schedule(weekdays="Mon..Fri", time="4:30"),
    "Sat,sunday *-*-1..7 0/6:15": Schedule(weekdays="Sat,sunday", date="*-*-1..7", time="0/6:15"),
    "*:0/15 UTC": Schedule(time="*:0/15", zone="UTC"),
    "2027-01-31": Schedule(date="2027-01-31"),
    "*-*~1 23:59:59.5": Schedule(date="*-*~1", time="23:59:59.5"),
    "Daily Europe/Berlin": Schedule(shorthand="daily", zone="Europe/Berlin"),
    "semi-annually": Schedule(shorthand="semiannually"),
    "Fri": Schedule(weekdays="Fri"),
    "04:30 America/Argentina/Ushuaia": Schedule(time="04:30", zone="America/Argentina/Ushuaia"),
}
NONE = {
    "": "it names neither a day nor a time",
    "UTC": "it names neither a day nor a time",
    "at night": "there is no weekday 'at'",
    "dayly": "there is no weekday 'dayly'",
    "04:30 Mon": "weekdays, date, time and time zone stand in this order",
    "Fri..Mon": (
        "Fri..Mon is no range: it begins with the earlier day of the week, Monday is first"
    ),
    "20/5:00": "20/5 never comes to a second hour",
    "5..4:00": "5..4 is no range: it ends before it begins",
    "04:30 05:30": "'05:30' stands in the wrong place",
    "Mon..Fir 04:30": "there is no weekday 'fir'",
    "24:00": "there is no hour 24: they go from 0 to 23",
    "12:60": "there is no minute 60: they go from 0 to 59",
    "12:00:61": "there is no second 61: they go from 0 to 59",
    "12:30:": "'' is no second",
    "1.5:30": "'1.5' is no hour",
    "*-13-01": "there is no month 13: they go from 1 to 12",
    "*-*-32": "there is no day 32: they go from 1 to 31",
    "*-*-1/0": "'0' is no step: 1/15 is every 15th day",
    "*:*/5": "* stands alone: 0/5 is every 5th minute",
    "30 4 * * *": "cron spells it so, systemd does not",
    "*~*-1": "~ counts days from the month's end: *-*~1, not '*~*-1'",
}


@pytest.mark.parametrize(("text", "parts"), PARTS.items())
def test_a_calendar_event_is_read_into_its_parts(text, parts) -> None:
    """As they are written: systemd is to read them."""
    assert schedule(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        f"*-*-* 0/{'9' * 5000}:00",
        f"*-*-* {'9' * 5000}:00",
        f"*-*-* 04:30:00.{'1' * 5000}",
        "*-*-* \u0660\u0664:\u0663\u0660",
        "*-*-* \u00b2:00",
        "*-*-* 0/\u0661\u0665:00",
    ],
)
def test_digits_without_end_or_of_another_script_are_refused(text) -> None:
    """As systemd refuses them; the refusal is the same as any."""
    with pytest.raises(InventoryError, match="is no calendar event"):
        schedule(text)


@pytest.mark.parametrize(("text", "problem"), NONE.items())
def test_what_is_no_calendar_event_is_refused(text, problem) -> None:
    """With the word that is wrong, and examples of the form."""
    with pytest.raises(InventoryError) as caught:
        schedule(text)

    assert caught.value.problem == f"{text!r} is no calendar event: {problem}"
    assert "'Mon..Fri 04:30'" in caught.value.way_out


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("04:30 Europe/Berln", "Did you mean Europe/Berlin?"),
        ("04:30 Mars/Olympus_Mons", "Write it as in the zone database: Europe/Berlin."),
        ("04:30 CEST", "Did you mean EST?"),
    ],
)
def test_an_unknown_time_zone_is_refused(text, way_out) -> None:
    """Before a timer runs at an hour that nobody meant."""
    with pytest.raises(InventoryError) as caught:
        schedule(text)

    assert caught.value.problem == f"there is no time zone {text.split()[1]}"
    assert caught.value.way_out == way_out


@pytest.fixture(scope="module")
def systemd():
    """Whether systemd takes a text for a calendar event."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")

    def systemd(text: str) -> bool:
        argv = [program, "calendar", "--", text]
        return subprocess.run(argv, capture_output=True, check=False, timeout=60).returncode == 0

    return systemd


def numbers(lowest: int, highest: int) -> st.SearchStrategy[str]:
    """A component: numbers, ranges, steps, lists of them, or all."""
    # Some of them too high, so that both have something to refuse.
    number = st.integers(lowest, highest + 1).map(str)
    ordered = st.tuples(st.integers(lowest, highest), st.integers(1, highest - lowest)).map(
        # systemd takes a range's end that is too high for the highest that is not; here it is none.
        lambda pair: f"{pair[0]}..{min(pair[0] + pair[1], highest)}"
    )
    one = st.one_of(number, ordered)
    stepped = st.tuples(one, st.integers(0, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    return st.one_of(
        st.just("*"),
        st.lists(st.one_of(one, stepped), min_size=1, max_size=3).map(",".join),
    )


days = st.sampled_from(["Mon", "tue", "Wednesday", "THU", "Fri", "Sat", "Sun", "Day"])
dates = st.one_of(
    st.tuples(numbers(1, 12), numbers(1, 31)).map("-".join),
    # Of lists counted from the month's end systemd takes some: those are left to it.
    st.tuples(numbers(1, 12), numbers(1, 28).filter(lambda text: "," not in text)).map("~".join),
    st.tuples(st.just("*"), numbers(1, 12), numbers(1, 31)).map("-".join),
    st.integers(2027, 2199).map("{}-*-*".format),
)
clock = st.one_of(
    st.tuples(numbers(0, 23), numbers(0, 59)).map(":".join),
    st.tuples(numbers(0, 23), numbers(0, 59), numbers(0, 59)).map(":".join),
)
events = st.one_of(
    st.sampled_from([*SHORTHANDS, "annually", "semi-annually", "nightly"]),
    st.tuples(
        st.one_of(
            st.just(""),
            st.lists(
                st.one_of(days, st.tuples(days, days).map("..".join)), min_size=1, max_size=3
            ).map(",".join),
        ),
        st.one_of(st.just(""), dates),
        st.one_of(st.just(""), clock),
    ).map(lambda words: " ".join(filter(None, words))),
).flatmap(
    lambda event: st.sampled_from(["", " UTC", " Europe/Berlin"]).map(lambda zone: event + zone)
)


@given(event=events)
def test_systemd_takes_what_is_taken_and_refuses_what_is_refused(systemd, event) -> None:
    """Both ways: a timer's schedule is right before anybody installs it."""
    try:
        schedule(event)
    except InventoryError as error:
        taken, why = False, error.problem
    else:
        taken, why = True, ""

    assert taken is systemd(event), f"{event!r} {why}"


def test_each_shorthand_is_systemd_s(systemd) -> None:
    """None is left out of the manual's list, and none is made up."""
    assert all(map(systemd, SHORTHANDS))
    assert all(re.fullmatch("[a-z]+", word) for word in SHORTHANDS)
