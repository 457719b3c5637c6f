"""What holds of the news over any sequence of nights."""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
from hypothesis import given
from hypothesis import strategies as st

from eagleops.nights.fault import Fault, is_lasting
from eagleops.nights.faults import News, chronicle, news, open_faults
from eagleops.nights.finding import STATES, Finding
from eagleops.nights.night import Night

KEYS = [("a", "disk"), ("a", "speed:x"), ("a", "speed:y"), ("a", "doctor"), ("a", "doctor:shm")]
KEYS += [("a", "doctor:gpus"), ("b", "disk"), ("b", "xid"), ("b", "ecc"), ("b", "ecc:1")]
CHECKS = ["disk", "doctor", "ecc", "speed:x", "xid"]


def night_of(day: int, found: dict[tuple[str, str], str], asked: dict[str, list[str]]) -> Night:
    """A night of these findings."""
    findings = tuple(Finding(check, host, state, "") for (host, check), state in found.items())
    return Night(
        suite="s",
        uuid=f"{day:08d}",
        began_utc=f"2026-{1 + day // 28:02d}-{1 + day % 28:02d}T02:30:00Z",
        ended_utc="2026-12-31T00:00:00Z",
        outcome="done",
        findings=findings,
        asked={host: tuple(checks) for host, checks in asked.items()},
    )


@st.composite
def pasts(draw: st.DrawFn) -> list[Night]:
    """Some nights: any states, any checks left out, now and then another suite."""
    found = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(STATES))
    asked = st.just({}) | st.dictionaries(
        st.sampled_from(["a", "b"]), st.lists(st.sampled_from(CHECKS))
    )
    days = draw(st.lists(st.tuples(found, asked), max_size=14))
    return [night_of(day, *told) for day, told in enumerate(days)]


def moves(nights: list[Night]) -> dict[tuple[str, str], list[str]]:
    """Of each host and check what was told of it, in order; standing is no news."""
    seen: dict[tuple[str, str], list[str]] = {}
    for _, told in chronicle(nights):
        for name in ("ended", "began", "worsened", "events"):
            for fault in getattr(told, name):
                seen.setdefault((fault.host, fault.check), []).append(name)
    return seen


def faults(told: News) -> Iterator[Fault]:
    """All faults of a night."""
    for name in attrs.fields_dict(News):
        yield from getattr(told, name)


@given(pasts())
def test_each_fault_begins_once_and_ends_once(nights: list[Night]) -> None:
    """Begin and end take turns, begin first; between them worse is told once at most."""
    for (_, check), told in moves(nights).items():
        if is_lasting(check.partition(":")[0]):
            turns = [name for name in told if name != "worsened"]
            assert turns == (["began", "ended"] * len(turns))[: len(turns)]
            assert "worsened worsened" not in " ".join(told)
            assert told[0] == "began"
        else:
            assert set(told) == {"events"}


@given(pasts())
def test_each_key_is_in_one_list_of_a_night(nights: list[Night]) -> None:
    """Nothing is told in two ways in one night, and every bad finding is in some list."""
    for night, told in chronicle(nights):
        keys = [(fault.host, fault.check) for fault in faults(told)]
        bad = {(finding.host, finding.id) for finding in night.findings if finding.bad}
        assert len(keys) == len(set(keys))
        assert bad <= set(keys)


@given(pasts(), st.data())
def test_a_skip_changes_nothing(nights: list[Night], data: st.DataObject) -> None:
    """A night in which nobody could look, put anywhere, is no news and makes none later."""
    at = data.draw(st.integers(0, len(nights)))
    days = [night_of(day, {}, {}).began_utc for day in range(len(nights) + 1)]
    blind = night_of(99, dict.fromkeys(KEYS, "skip"), {})
    longer = [*nights[:at], blind, *nights[at:]]
    longer = [attrs.evolve(n, began_utc=day) for n, day in zip(longer, days, strict=True)]

    assert moves(longer) == moves(nights)
    assert [told.changed for n, told in chronicle(longer) if n.uuid == blind.uuid] == [False]


@given(pasts())
def test_what_was_told_stays_what_was_told(nights: list[Night]) -> None:
    """The news of each night, when it was told, is the news that the whole history has of it."""
    whole = [told for _, told in chronicle(nights)]

    assert whole == [news(nights[:at], night) for at, night in enumerate(nights)]


@given(pasts(), st.randoms(use_true_random=False))
def test_telling_it_again_tells_the_same(nights: list[Night], chance: random.Random) -> None:
    """Tonight may be in the history already, and the history in any order."""
    mixed = list(nights)
    chance.shuffle(mixed)

    for at, night in enumerate(nights):
        assert news(mixed, night) == news(nights[:at], night)


@given(pasts(), st.randoms(use_true_random=False))
def test_a_night_that_was_taken_up_tells_what_a_whole_one_does(
    nights: list[Night], chance: random.Random
) -> None:
    """Findings in another order, and some made twice: a skip when it was cut off, then anew."""
    for at, night in enumerate(nights):
        findings = list(night.findings)
        chance.shuffle(findings)
        before = [attrs.evolve(finding, state="skip") for finding in findings[: len(findings) // 2]]
        resumed = attrs.evolve(night, findings=(*before, *findings))

        assert news(nights[:at], resumed) == news(nights[:at], night)


@given(pasts())
def test_what_is_open_is_what_began_and_has_not_ended(nights: list[Night]) -> None:
    """The count of open faults is the difference of the two."""
    told = [of for _, of in chronicle(nights)]
    began = sum(len(of.began) for of in told)
    ended = sum(len(of.ended) for of in told)

    assert len(open_faults(nights)) == began - ended
    assert all(fault.ended_utc is None for fault in open_faults(nights))


@given(pasts())
def test_only_a_pass_or_the_suite_ends_a_fault(nights: list[Night]) -> None:
    """Of a check of its own, without siblings on the host, nothing else does."""
    for night, told in chronicle(nights):
        for fault in told.ended:
            own = night.finding(fault.host, fault.check)
            if fault.check in {"disk", "speed:x", "speed:y"}:
                passed = own is not None and own.state == "pass"
                assert fault.ending == ("passed" if passed else "not_checked")
                assert passed or (night.asked and fault.kind not in night.asked.get(fault.host, ()))
