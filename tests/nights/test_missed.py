"""News that did not get through is told with the next that does."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from eagleops.nights.faults import News, chronicle, news
from eagleops.nights.finding import Finding
from eagleops.nights.missed import news_with_missed
from eagleops.nights.night import Night

SENT, LOST, QUIET = {"hook": {"ok": True}}, {"hook": {"ok": False}}, {}


def heard(night: Night) -> bool | None:
    """Whether this night's message got through; None where none was sent."""
    return night.told.get("hook", {}).get("ok")


def nights_of(make_night, *days) -> list[Night]:
    """A night a day, of the states of disk and xid and what became of its message."""
    return [
        make_night(day, {("llm", "disk"): disk, ("llm", "xid"): xid}, told=told)
        for day, (disk, xid, told) in enumerate(days)
    ]


def words(told: News) -> dict[str, list[str]]:
    """The checks of each list, and the days on which they began; empty lists are left out."""
    lists = {name: getattr(told, name) for name in attrs.fields_dict(News)}
    return {
        name: [f"{fault.check} of {fault.began_utc[8:10]}" for fault in faults]
        for name, faults in lists.items()
        if faults
    }


def test_what_got_lost_is_told_the_next_time(make_night) -> None:
    """A fault that began in a night whose message was lost is new to who reads the next one."""
    nights = nights_of(
        make_night, ("pass", "pass", QUIET), ("warn", "fail", LOST), ("fail", "pass", QUIET)
    )

    assert words(news(nights, nights[2])) == {"worsened": ["disk of 02"]}
    told = news_with_missed(nights, nights[2], heard)
    assert words(told) == {"began": ["disk of 02"], "events": ["xid of 02"]}
    assert (told.began[0].state, told.began[0].nights) == ("fail", 2)


def test_several_nights_that_got_lost_are_told_together(make_night) -> None:
    """With quiet ones between them, back to the last night that was told."""
    nights = nights_of(
        make_night,
        ("fail", "fail", SENT),
        ("pass", "pass", LOST),
        ("pass", "pass", QUIET),
        ("fail", "fail", LOST),
        ("fail", "pass", QUIET),
        ("fail", "warn", QUIET),
    )

    assert words(news_with_missed(nights, nights[5], heard)) == {
        "began": ["disk of 04"],
        "ended": ["disk of 01"],
        "events": ["xid of 04", "xid of 06"],
    }


def test_what_began_and_ended_unheard_is_told_as_ended(make_night) -> None:
    """It is over, and was there."""
    nights = nights_of(make_night, ("fail", "pass", LOST), ("pass", "pass", QUIET))

    assert words(news_with_missed(nights, nights[1], heard)) == {"ended": ["disk of 01"]}


def test_a_reader_who_was_never_told_anything_is_not_told_everything(make_night) -> None:
    """A webhook that is new in a suite with a history starts with tonight's news."""
    nights = nights_of(
        make_night, ("fail", "fail", QUIET), ("pass", "fail", QUIET), ("fail", "pass", QUIET)
    )

    assert news_with_missed(nights, nights[2], heard) == news(nights, nights[2])
    assert news_with_missed([], nights[0], heard) == news([], nights[0])


@given(
    st.lists(
        st.tuples(st.sampled_from(["pass", "warn", "fail", "skip"]), st.booleans()),
        min_size=1,
        max_size=12,
    )
)
def test_each_fault_is_heard_of_once_whatever_gets_lost(days: list[tuple[str, bool]]) -> None:
    """Of the messages that get through, each fault's begin and end are told once at most.

    And after each of them the reader knows of every fault that there was.
    """
    past: list[Night] = []
    begins, ends = [], []
    for day, (state, is_sent) in enumerate(days):
        began = f"2026-10-{day + 1:02d}T00:00:00Z"
        finding = Finding("disk", "llm", state, "")
        night = Night(suite="s", uuid=str(day), began_utc=began, findings=(finding,))
        told = news_with_missed(past, night, heard)
        past.append(
            attrs.evolve(night, told=(SENT if is_sent else LOST) if told.changed else QUIET)
        )
        if told.changed and is_sent:
            begins += [fault.began_utc for fault in told.began]
            ends += [fault.began_utc for fault in told.ended]
            there = [f.began_utc for _, of in chronicle(past) for f in of.began]
            assert set(there) == set(begins) | set(ends)
            assert {f.began_utc for f in told.open} == set(there) - set(ends)

    assert len(begins) == len(set(begins))
    assert len(ends) == len(set(ends))
