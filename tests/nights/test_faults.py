"""Which of a night's findings are news."""

from __future__ import annotations

import attrs
import pytest

from eagleops.nights.faults import News, chronicle, news, open_faults


def words(told: News) -> dict[str, list[str]]:
    """The names of what is told, by list; empty lists are left out."""
    lists = {name: getattr(told, name) for name in attrs.fields_dict(News)}
    return {
        name: [f"{f.host} {f.check}" for f in faults] for name, faults in lists.items() if faults
    }


def told(nights) -> list[str]:
    """What each night told of its only check, a word a night."""
    return ["+".join(words(of)) for _, of in chronicle(nights)]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["pass", "pass"], ["", ""]),
        (["fail"], ["began"]),
        (["pass", "fail", "fail", "pass", "pass"], ["", "began", "standing", "ended", ""]),
        (["fail", "skip", "fail", "pass"], ["began", "standing", "standing", "ended"]),
        (["fail", None, None, "pass"], ["began", "standing", "standing", "ended"]),
        (["skip", "warn", "skip", "pass"], ["", "began", "standing", "ended"]),
        (["warn", "fail", "fail"], ["began", "worsened", "standing"]),
        (["fail", "warn", "fail", "warn"], ["began", "standing", "standing", "standing"]),
        (["warn", "fail", "warn", "fail"], ["began", "worsened", "standing", "standing"]),
        (
            ["warn", "fail", "pass", "warn", "fail"],
            ["began", "worsened", "ended", "began", "worsened"],
        ),
        (["fail", "pass", "fail", "pass"], ["began", "ended", "began", "ended"]),
    ],
)
def test_a_lasting_fault_is_told_when_it_begins_worsens_and_ends(series, states, expected) -> None:
    """Nothing is told twice, a night that did not look tells nothing, and worse is told once."""
    assert told(series("disk", *states)) == expected


def test_an_event_is_told_when_it_is_seen_and_never_ends(series) -> None:
    """An Xid, or a new driver, is news of one night; a night without it is no news."""
    nights = series("driver", "warn", "pass", "pass", "warn", "warn")

    assert told(nights) == ["events", "", "", "events", "events"]
    assert open_faults(nights) == ()


def test_a_fault_tells_its_history(series) -> None:
    """When it began, in how many nights it was seen, for how long nobody could look."""
    nights = series("disk", "warn", "fail", "skip", None)
    (fault,) = open_faults(nights)

    assert (fault.state, fault.worst, fault.nights, fault.blind_nights) == ("fail", "fail", 2, 2)
    assert (fault.began_utc, fault.seen_utc) == (nights[0].began_utc, nights[1].began_utc)
    assert fault.message == "disk on day 1: fail"
    assert (fault.ended_utc, fault.ending) == (None, None)

    (over,) = news(nights, series("disk", None, None, None, None, "pass")[4]).ended
    assert (over.ending, over.ended_message) == ("passed", "disk on day 4: pass")
    assert (over.ended_utc, over.nights, over.blind_nights) == ("2026-10-05T02:30:00Z", 2, 0)


def test_hosts_and_subjects_are_told_apart(make_night) -> None:
    """The same check of two hosts, or of two profiles, are two faults; the worst stand first."""
    first = make_night(0, {("llm", "speed:a"): "warn", ("pve", "speed:a"): "pass"})
    second = make_night(
        1, {("llm", "speed:b"): "fail", ("llm", "speed:a"): "pass", ("pve", "speed:a"): "warn"}
    )

    assert words(news([first], second)) == {
        "began": ["llm speed:b", "pve speed:a"],
        "ended": ["llm speed:a"],
    }


def test_a_check_that_the_suite_no_longer_asks_for_ends_its_fault(make_night) -> None:
    """Set to off, or its profile removed: the fault is over, and was not healed."""
    bad = make_night(0, {("llm", "disk"): "fail", ("llm", "speed:a"): "fail"})
    asked = {"llm": ("reach", "disk", "speed:b")}
    after = make_night(1, {("llm", "disk"): "skip"}, asked=asked)

    told_of = news([bad], after)

    assert words(told_of) == {"ended": ["llm speed:a"], "standing": ["llm disk"]}
    (over,) = told_of.ended
    assert (over.ending, over.ended_message) == ("not_checked", "no longer checked")


def test_a_host_that_leaves_the_suite_ends_its_faults(make_night) -> None:
    """Nobody looks at it any more; that a night looks at one host alone says nothing of others."""
    bad = make_night(0, {("llm", "disk"): "fail", ("old", "reach"): "fail"})
    asked = {"llm": ("reach", "disk"), "old": ("reach", "disk")}
    alone = make_night(1, {("llm", "disk"): "fail"}, asked=asked)
    gone = make_night(2, {("llm", "disk"): "fail"}, asked={"llm": ("reach", "disk")})

    assert words(news([bad], alone)) == {"standing": ["llm disk", "old reach"]}
    assert words(news([bad, alone], gone)) == {"ended": ["old reach"], "standing": ["llm disk"]}


def test_a_kind_of_a_host_is_asked_for_with_all_its_subjects(make_night) -> None:
    """``doctor`` stands for each of doctor's checks."""
    bad = make_night(0, {("llm", "doctor:ptrace"): "fail"})
    after = make_night(1, {("llm", "doctor"): "skip"}, asked={"llm": ("doctor",)})

    assert words(news([bad], after)) == {"standing": ["llm doctor:ptrace"]}


def test_a_subject_that_a_look_no_longer_names_is_over(make_night) -> None:
    """A GPU that is gone: the others were looked at; before that, nothing is known."""
    bad = make_night(0, {("llm", "ecc:3"): "fail", ("llm", "ecc:0"): "pass"})
    blind = make_night(1, {("llm", "ecc:0"): "skip"})
    gone = make_night(2, {("llm", "ecc:0"): "pass"})

    assert words(news([bad], blind)) == {"standing": ["llm ecc:3"]}
    (over,) = news([bad, blind], gone).ended
    assert (over.check, over.ending) == ("ecc:3", "not_checked")


def test_one_pass_of_a_kind_is_a_pass_of_each_subject(make_night) -> None:
    """A check that names its subjects only where they are bad, and says once that all are well."""
    bad = make_night(0, {("llm", "pcie:3"): "fail", ("llm", "pcie:4"): "fail"})
    well = make_night(1, {("llm", "pcie"): "pass"})

    assert [(f.check, f.ending, f.ended_message) for f in news([bad], well).ended] == [
        ("pcie:3", "passed", "pcie on day 1: pass"),
        ("pcie:4", "passed", "pcie on day 1: pass"),
    ]


def test_a_kind_that_failed_as_a_whole_is_over_when_its_subjects_are_seen(make_night) -> None:
    """Doctor could not be run at all; then it ran."""
    broken = make_night(0, {("llm", "doctor"): "fail"})
    runs = make_night(1, {("llm", "doctor:gpus"): "pass", ("llm", "doctor:shm"): "warn"})

    assert words(news([broken], runs)) == {
        "began": ["llm doctor:shm"],
        "ended": ["llm doctor"],
    }
    assert news([broken], runs).ended[0].ending == "passed"


def test_a_profile_that_was_not_reached_keeps_its_fault(make_night) -> None:
    """Other profiles were measured, the time limit came: nothing is known of this one."""
    bad = make_night(0, {("llm", "speed:a"): "pass", ("llm", "speed:b"): "fail"})
    cut = make_night(1, {("llm", "speed:a"): "pass"}, outcome="time_limit")

    assert words(news([bad], cut)) == {"standing": ["llm speed:b"]}


def test_of_a_check_that_was_made_again_the_last_finding_holds(make_night, series) -> None:
    """A night that was cut off and taken up looked twice."""
    night = series("disk", "fail")[0]
    again = attrs.evolve(night, findings=(*night.findings, *series("disk", "pass")[0].findings))

    assert words(news([], again)) == {}
    assert again.finding("llm", "disk").state == "pass"


def test_a_night_that_began_later_is_no_history(series) -> None:
    """A clock that was a year ahead for one night does not have an end told every night."""
    nights = series("disk", "pass", "pass", "pass")
    ahead = attrs.evolve(series("disk", "fail")[0], began_utc="2030-01-01T00:00:00Z", uuid="ahead")

    assert words(news([*nights[:2], ahead], nights[2])) == {}
    assert words(news(nights, ahead)) == {"began": ["llm disk"]}


def test_the_order_is_that_of_time_whatever_the_text(make_night) -> None:
    """Fractions and zones of a time are read; of two nights at once their names decide."""
    key = ("llm", "disk")
    late = make_night(0, {key: "pass"}, began_utc="2026-10-01T02:30:00.500Z", uuid="b")
    early = make_night(0, {key: "fail"}, began_utc="2026-10-01T04:30:00+02:00", uuid="z")
    twin = make_night(0, {key: "fail"}, began_utc=late.began_utc, uuid="c")

    assert [night.uuid for night, _ in chronicle([twin, late, early])] == ["z", "b", "c"]
    assert words(news([twin, early], late)) == {"ended": ["llm disk"]}


def test_a_kind_of_a_newer_version_is_taken_for_a_lasting_one(series) -> None:
    """A night that a newer eagleops wrote can be read by an older one."""
    assert told(series("weather", "fail", "fail", "pass")) == ["began", "standing", "ended"]


def test_news_says_whether_there_is_any(series) -> None:
    """A standing fault is none."""
    nights = series("disk", "fail", "fail", "pass")

    assert [of.changed for _, of in chronicle(nights)] == [True, False, True]
    assert [len(of.open) for _, of in chronicle(nights)] == [1, 1, 0]
    assert open_faults([]) == ()
