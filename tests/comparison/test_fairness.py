"""What makes a comparison unfair is named before it runs."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.comparison.fairness import draft_tokens, remarks, speculates
from eagleops.comparison.order import ORDERS, order_of, rounds
from eagleops.errors import UsageError
from eagleops.inventory import load, shipped
from eagleops.profile import Profile

BASELINE = Profile(
    name="baseline", engine="sglang", model="m", args={"tp-size": 8}, env={"NCCL_PROTO": "LL"}
)
SPECULATIVE = {
    "speculative-algorithm": "EAGLE3",
    "speculative-num-steps": 2,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 3,
}
PINS = {
    "max-running-requests": 16,
    "max-total-tokens": 65536,
    "cuda-graph-max-bs": 16,
    "disable-overlap-schedule": True,
}


def keys(baseline: Profile, other: Profile, **more) -> list[tuple[str, str]]:
    """Kind and key of each remark."""
    return [(one.kind, one.key) for one in remarks(baseline, other, **more)]


def test_speculation_changes_more_than_its_flags() -> None:
    """SGLang's silent changes are named, each with the flag that pins both sides."""
    eagle = BASELINE.with_(name="eagle3", args=SPECULATIVE)

    assert keys(BASELINE, eagle) == [
        ("silent", "args.max-running-requests"),
        ("silent", "args.max-total-tokens"),
        ("silent", "args.cuda-graph-max-bs"),
        ("silent", "args.disable-overlap-schedule"),
    ]
    first = remarks(BASELINE, eagle)[0]
    assert first.message == (
        "SGLang sets max_running_requests to 48 in eagle3, because it speculates and does not "
        "say it"
    )
    assert first.way_out == "Give --max-running-requests the same value on both sides."


def test_pinned_on_both_sides_nothing_is_left_to_say() -> None:
    """With every silent change pinned the comparison is fair."""
    pinned = BASELINE.with_(args=PINS)

    assert keys(pinned, pinned.with_(name="eagle3", args=SPECULATIVE)) == []


def test_a_pin_in_another_spelling_counts() -> None:
    """Both engines' parsers take underscores for dashes, and so does this."""
    pinned = BASELINE.with_(args=PINS)
    spelled = {name.replace("-", "_"): value for name, value in PINS.items()}
    other = BASELINE.with_(name="eagle3", args={**spelled, **SPECULATIVE})

    assert [kind for kind, _ in keys(pinned, other) if kind == "silent"] == []


def test_the_shipped_profiles_differ_by_one_variable_too() -> None:
    """EAGLE3_PROFILE came along with the flags: that is told."""
    inventory = load(shipped())
    found = remarks(inventory.profile("baseline"), inventory.profile("eagle3-2step"))

    assert [one.message for one in found if one.kind == "differs"] == [
        "env.EAGLE3_PROFILE differs: not given in the baseline, 1 here"
    ]


def test_the_one_thing_that_differs_is_what_is_compared() -> None:
    """A single difference is meant; a second one has to be said."""
    simple = BASELINE.with_(name="simple", env={"NCCL_PROTO": "Simple"})
    both = simple.with_(name="both", args={"tp-size": 4})

    assert keys(BASELINE, simple) == []
    assert keys(BASELINE, both) == [("differs", "args.tp-size"), ("differs", "env.NCCL_PROTO")]
    assert keys(BASELINE, both, meant=["env.*"]) == [("differs", "args.tp-size")]
    assert keys(BASELINE, both, meant=["env.NCCL_PROTO", "args.tp-size"]) == []


def test_a_secret_that_differs_is_not_shown() -> None:
    """That it differs is told; its values are not."""
    one = BASELINE.with_(env={"HF_TOKEN": "hf_first_secret"}, model="x")
    other = BASELINE.with_(name="other", env={"HF_TOKEN": "hf_second_secret"}, model="y")

    told = " ".join(remark.message for remark in remarks(one, other))
    assert "env.HF_TOKEN differs" in told
    assert "secret" not in told.replace("env.HF_TOKEN", "")


def test_mixed_chunks_are_lost_silently() -> None:
    """A baseline with mixed chunks is compared with a speculation without."""
    mixed = BASELINE.with_(args={**PINS, "enable-mixed-chunk": True})

    assert keys(mixed, mixed.with_(name="eagle3", args=SPECULATIVE)) == [
        ("silent", "args.enable-mixed-chunk")
    ]


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ({}, None),
        (SPECULATIVE, 3),
        ({**SPECULATIVE, "speculative-num-draft-tokens": 9}, 3),
        ({**SPECULATIVE, "speculative-eagle-topk": 4, "speculative-num-draft-tokens": 8}, 8),
        ({"speculative-algorithm": "EAGLE3"}, None),
    ],
)
def test_the_most_that_a_cycle_can_yield(args, count) -> None:
    """With top-k 1 it is the steps and one more, whatever else the profile says."""
    assert draft_tokens(BASELINE.with_(args=args)) == count


def test_vllm_counts_its_own_way() -> None:
    """num_speculative_tokens leaves the target's own token out."""
    profile = attrs.evolve(BASELINE, engine="vllm").with_(
        args={"speculative-config": {"method": "eagle3", "num_speculative_tokens": 2}}
    )

    assert (speculates(profile), draft_tokens(profile)) == (True, 3)


def test_abba_turns_every_second_round() -> None:
    """A steady drift meets each profile early as often as late."""
    assert rounds("AB", 4, "abba") == (("A", "B"), ("B", "A"), ("A", "B"), ("B", "A"))
    assert rounds("AB", 2, "given") == (("A", "B"), ("A", "B"))


@given(
    profiles=st.lists(st.text(min_size=1), min_size=2, max_size=5, unique=True),
    restarts=st.integers(1, 8),
    order=st.sampled_from(ORDERS),
    seed=st.integers(0, 9),
)
def test_each_round_has_each_profile_once(profiles, restarts, order, seed) -> None:
    """Whatever the order, no profile is measured more often than another."""
    found = rounds(profiles, restarts, order, seed)

    assert len(found) == restarts
    assert all(sorted(line) == sorted(profiles) for line in found)
    assert rounds(profiles, restarts, order, seed) == found


def test_an_unknown_order_is_a_usage_error() -> None:
    """The flag's own values are named."""
    with pytest.raises(UsageError, match="--order: expected abba, given or random, got baab"):
        order_of("baab")
