"""Verdicts in words, the rules for what does not count, and the document's keys."""

from __future__ import annotations

import attrs
import pytest

from comparison.examples import BASELINE, EAGLE, SECRET, parts_of, trials_of
from eagleops.comparison.trial import Restarts, Trial
from eagleops.comparison.verdict import verdicts

pytest.importorskip("scipy", reason="the [stats] extra is not installed")


def words(before: list[float], after: list[float]) -> str:
    """The verdict on EAGLE-3 against the baseline."""
    (verdict,) = verdicts(trials_of(BASELINE, before), [trials_of(EAGLE, after)])
    return verdict.words


def test_the_answer_in_plain_words() -> None:
    """Slower by how much, how surely, and why: the sum of the break-even."""
    told = words([82.0, 82.5, 81.8, 82.4, 82.3], [60.1, 59.8, 60.3, 60.0, 59.8])

    assert told == (
        "eagle3-2step is 27 % slower than baseline (60.0 against 82.2 tok/s, 95 % interval "
        "-27.4 to -26.6 %). A cycle takes 30.6 ms, so it needs 2.52 accepted tokens a cycle to "
        "break even; it has 1.84."
    )


@pytest.mark.parametrize(
    ("before", "after", "ending"),
    [
        ([82.0], [60.0], "1 and 1 restarts tell nothing of their spread; at least 4 of each are "),
        ([80.0, 82.0, 84.0], [60.0, 62.0, 64.0], "cannot show any; at least 4 of each are needed."),
        ([82.0, 82.1, 82.2, 82.3], [82.05, 82.15, 82.25, 82.1], "2 % or more is ruled out."),
        ([78.0, 82.0, 80.0, 84.0], [81.0, 83.0, 79.0, 80.0], "each would tell within 2 %."),
    ],
)
def test_no_difference_shown_is_said_as_such(before, after, ending) -> None:
    """It says whether a difference is ruled out, or what would be needed to tell."""
    told = words(before, after)

    assert told.startswith("No difference shown between eagle3-2step and baseline (")
    assert ending in told


def test_several_profiles_are_each_held_to_more() -> None:
    """With two comparisons one false alarm of both together stays at 5 %."""
    third = attrs.evolve(EAGLE, name="third")
    baseline = trials_of(BASELINE, [82.0, 82.5, 81.8, 82.4])
    others = [trials_of(one, [60.0, 60.1, 59.9, 60.2]) for one in (EAGLE, third)]

    found = verdicts(baseline, others)

    # Four against four reach 0.029 at best, which two comparisons at once are not allowed.
    assert [verdict.conclusion for verdict in found] == ["no_difference_shown"] * 2
    assert [verdict.least_restarts for verdict in found] == [5, 5]


def test_a_baseline_that_speculates_tells_of_no_plain_step() -> None:
    """Without the time of a plain step there is no break-even, and none is made up."""
    third = attrs.evolve(EAGLE, name="third")
    (verdict,) = verdicts(trials_of(EAGLE, [60.0, 60.1]), [trials_of(third, [62.0, 62.1])])

    assert verdict.break_even is None


def test_a_profile_without_a_restart_that_counts_has_no_verdict() -> None:
    """It is said, and neither faster nor slower."""
    dead = Restarts(
        "eagle3-2step", (Trial(profile="eagle3-2step", restart=1, excluded=("it died",)),)
    )
    (verdict,) = verdicts(trials_of(BASELINE, [82.0, 82.1]), [dead])

    assert verdict.conclusion == "not_measured"
    assert verdict.words == ("eagle3-2step cannot be compared with baseline: no restart counts.")


def test_throttled_requests_do_not_count() -> None:
    """Fewer than half: the rest counts, and it is noted. Half or more: the restart is out."""
    once = Trial.of_parts("baseline", 1, parts_of(BASELINE, [50.0, 82.0, 82.2], throttled=1))
    twice = Trial.of_parts("baseline", 2, parts_of(BASELINE, [50.0, 51.0, 82.2], throttled=2))

    assert (once.counts, once.tok_s) == (True, pytest.approx(82.1))
    assert once.notes == ("1 of 3 requests left out: throttled",)
    assert (twice.counts, twice.excluded) == (False, ("throttled in 2 of 3 requests",))


def test_throttled_requests_count_where_that_was_asked() -> None:
    """Under a power limit that always holds, nothing would be left: kept, and noted."""
    parts = parts_of(BASELINE, [50.0, 51.0, 82.2], throttled=2)
    kept = Trial.of_parts("baseline", 1, parts, keep_throttled=True)

    assert (kept.counts, kept.tok_s) == (True, 51.0)
    assert kept.notes == ("2 of 3 requests throttled, and kept",)


@pytest.mark.parametrize(
    ("counts", "excluded", "notes"),
    [
        ({"ok": 4, "wrong": 2, "missing": 1}, ("environment: 2 wrong, 1 missing",), ()),
        ({"ok": 4, "unknown": 2}, (), ("environment: 2 unknown, a witness was blind",)),
        ({"ok": 4}, (), ()),
    ],
)
def test_a_wrong_environment_does_not_count(counts, excluded, notes) -> None:
    """Wrong or missing is left out; what no witness could see is noted."""
    parts = {**parts_of(BASELINE, [82.0]), "environment": {"counts": counts}}
    trial = Trial.of_parts("baseline", 1, parts)

    assert (trial.excluded, trial.notes) == (excluded, notes)


def test_the_document_has_the_keys_that_stay(result) -> None:
    """What other programs read of a comparison."""
    document = result.to_dict()

    assert {"ok", "host", "profiles", "verdict", "break_even", "report"} <= set(document)
    profile = document["profiles"][1]
    assert profile["profile"] == "eagle3-2step"
    assert profile["tok_s"]["samples"] == [60.1, 59.8, 60.3, 60.0]
    assert profile["run_id"] == 105
    assert profile["excluded"] == [
        {"restart": 5, "run_id": 105, "reasons": ["throttled in 2 of 3 requests"]}
    ]
    verdict = document["verdict"][0]
    assert (verdict["profile"], verdict["against"]) == ("eagle3-2step", "baseline")
    assert (verdict["conclusion"], round(verdict["change_pct"])) == ("slower", -27)
    assert verdict["low_pct"] < verdict["change_pct"] < verdict["high_pct"]
    told = document["break_even"]
    assert (told["pays"], round(told["needed_accept_length"], 2)) == (False, 2.52)
    assert {"cycle_ms", "baseline_step_ms", "accept_length"} <= set(told)
    assert SECRET not in str(document)


def test_a_throttled_restart_is_shown_as_left_out(result) -> None:
    """Nothing is left out silently."""
    notes = [note.text for note in result.view().notes]

    assert notes[0] == ("eagle3-2step, restart 5 does not count: throttled in 2 of 3 requests")
    assert "4 (1 left out)" in result.view().to_html()


def test_a_slower_profile_fails_only_where_that_was_asked(result) -> None:
    """Being slower is an answer; in a pipeline it may be a failure."""
    assert (result.ok, result.exit_status) == (True, 0)
    assert attrs.evolve(result, fail_if_slower=True).exit_status == 1
    assert attrs.evolve(result, aborted="no baseline").exit_status == 1
