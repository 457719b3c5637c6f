"""The verdict: each case by name, and what holds in every combination of witnesses."""

from __future__ import annotations

import itertools

import attrs
import pytest

from eagleops.environment import Ancestor, Effective, Initial, Live, Witnesses, verdict
from eagleops.environment.values import Secret
from eagleops.environment.verdict import SET_IT
from eagleops.environment.witnesses import ConfSetting

ALGO = "NCCL_ALGO"
NTHREADS = "NCCL_NTHREADS"

STARTED_WITH = {
    "same": Initial("whole", "Ring"),
    "other": Initial("whole", "Tree"),
    "without": Initial("whole"),
    "overwritten": Initial("overwritten", overwritten_bytes=600, size=600),
    "partly, same left": Initial("partly_overwritten", "Ring", overwritten_bytes=5, size=600),
    "partly, nothing left": Initial("partly_overwritten", overwritten_bytes=500, size=600),
    "unreadable": Initial("unreadable", why="the process belongs to uid 0"),
    "empty": Initial("empty"),
}
LIVE = {
    "same": Live(value="Ring", holder="libc.so.6"),
    "other": Live(value="Tree", holder="libc.so.6"),
    "without": Live(holder="libc.so.6"),
    "blind": Live(readable=False, why="Yama forbids it", way_out="sysctl it"),
}
NO_LOG = Effective(why="NCCL_DEBUG is not set in it, so NCCL writes no log")
MADE_TWO = Effective(
    logged=True,
    path="/s/nccl.7.log",
    started=(2,),
    complete=(2,),
    env_logged=True,
    peers=("NCCL_PROTO",),
    version="2.28.9+cuda13.0",
)
EFFECTIVE = {
    "no log": NO_LOG,
    "no NCCL": attrs.evolve(NO_LOG, loaded=False),
    "not started": Effective(logged=True, loaded=True),
    "one rank": Effective(logged=True, started=(1,), complete=(1,)),
    "silent on it": MADE_TWO,
    "silent on all": attrs.evolve(MADE_TWO, env_logged=False, peers=()),
    "took it": attrs.evolve(MADE_TWO, values=("Ring",)),
    "took another": attrs.evolve(MADE_TWO, values=("Tree",)),
    "refused": attrs.evolve(
        MADE_TWO, values=("Ring",), refusals=("Unrecognized token",), complete=()
    ),
}
ABOVE = {None: None, "same": Ancestor(1, "Ring"), "without": Ancestor(1, None)}
CONF = {
    None: None,
    "same": ConfSetting("/etc/nccl.conf", "Ring"),
    "other": ConfSetting("/etc/nccl.conf", "Tree"),
}


def witnesses(
    initial: str,
    live: str,
    effective: str = "no log",
    above: str | None = None,
    conf: str | None = None,
    name: str = ALGO,
) -> Witnesses:
    """What the witnesses say of NCCL_ALGO, of which Ring is expected."""
    return Witnesses(
        name,
        STARTED_WITH[initial],
        LIVE[live],
        EFFECTIVE[effective],
        ancestor=ABOVE[above],
        conf=CONF[conf],
    )


CASES = [
    # initial, live, effective, above, conf -> verdict, part of why or of a note
    ("same", "same", "took it", None, None, "ok", ""),
    ("overwritten", "same", "took it", None, None, "ok", ""),
    ("overwritten", "same", "no log", None, None, "unknown", "when it was set is not seen"),
    ("overwritten", "same", "no log", "same", None, "ok", "PID 1 above it was started with it"),
    ("overwritten", "same", "one rank", None, None, "ok", "no communicator of two or more ranks"),
    ("overwritten", "same", "not started", None, None, "ok", "no communicator of two or more"),
    ("same", "same", "silent on all", None, None, "ok", "names a variable where NCCL needs it"),
    ("unreadable", "blind", "took it", None, None, "ok", ""),
    # set after the start
    ("without", "same", "took it", None, None, "ok", "set after start: it was started without it"),
    ("other", "same", "took it", None, None, "ok", "changed after start: it was started with Tree"),
    ("without", "same", "not started", None, None, "ok", "set after start"),
    ("without", "same", "no NCCL", None, None, "ok", "set after start"),
    ("overwritten", "same", "no NCCL", None, None, "ok", "NCCL is not loaded in it"),
    ("without", "same", "no log", None, None, "unknown", "before or after that cannot be told"),
    ("without", "same", "one rank", None, None, "ok", "set after start"),
    ("overwritten", "same", "no log", "without", None, "unknown", "PID 1 above it was started"),
    ("same", "same", "silent on it", None, None, "ok", "did not name it, though it was there fro"),
    ("overwritten", "same", "silent on it", "same", None, "ok", "did not name it, though it was"),
    # too late for NCCL
    ("without", "same", "silent on it", None, None, "wrong", "it was set too late"),
    ("overwritten", "same", "silent on it", None, None, "wrong", "2 ranks before and read NCCL_PR"),
    ("other", "same", "took another", None, None, "wrong", "NCCL had taken Tree before"),
    ("same", "same", "took another", None, None, "wrong", "although it was started with Ring"),
    # another value
    ("other", "other", "took another", None, None, "wrong", "NCCL took Tree"),
    ("other", "other", "no log", None, None, "wrong", "it is Tree"),
    ("same", "other", "no NCCL", None, None, "wrong", "changed after start: it was started"),
    ("same", "other", "not started", None, None, "wrong", "it is Tree"),
    ("same", "other", "silent on it", None, None, "wrong", "it is Tree"),
    ("overwritten", "other", "no NCCL", "same", None, "wrong", "PID 1 above it was started with"),
    ("overwritten", "other", "no log", "same", None, "unknown", "was Ring at start"),
    ("overwritten", "other", "no log", "without", None, "wrong", "set after start: PID 1 above it"),
    ("same", "other", "no log", None, None, "unknown", "it is Tree now and was Ring at start, and"),
    ("same", "other", "one rank", None, None, "wrong", "it is Tree"),
    ("unreadable", "blind", "took another", None, None, "wrong", "NCCL took Tree"),
    ("same", "other", "took it", None, None, "ok", "the environment has Tree now; NCCL keeps"),
    ("same", "without", "took it", None, None, "ok", "the environment has nothing now"),
    # refused
    ("same", "same", "refused", None, None, "wrong", "NCCL read Ring and refused it: Unrecognized"),
    ("unreadable", "blind", "refused", None, None, "wrong", "refused it"),
    # missing
    ("without", "without", "no log", None, None, "missing", "it was not started with it, and it h"),
    (
        "same",
        "without",
        "no NCCL",
        None,
        None,
        "missing",
        "was started with Ring and has removed i",
    ),
    ("same", "without", "no log", None, None, "unknown", "it is nothing now and was Ring at start"),
    ("overwritten", "without", "no NCCL", None, None, "missing", "its environment does not have"),
    ("overwritten", "without", "no log", None, None, "unknown", "may have been another before"),
    ("overwritten", "without", "no log", "without", None, "missing", "its environment does not h"),
    ("without", "without", "silent on it", None, None, "missing", "it was not started with it"),
    (
        "without",
        "without",
        "no log",
        None,
        "same",
        "missing",
        "NCCL would take it from /etc/nccl.c",
    ),
    (
        "without",
        "without",
        "no log",
        None,
        "other",
        "missing",
        "NCCL would take Tree from /etc/ncc",
    ),
    # blind
    ("same", "blind", "no log", None, None, "unknown", "what it was started with may have changed"),
    ("other", "blind", "no log", None, None, "unknown", "it was started with Tree"),
    ("without", "blind", "no log", None, None, "unknown", "it was started without it"),
    ("overwritten", "blind", "no log", None, None, "unknown", "Yama forbids it"),
    ("unreadable", "blind", "silent on it", None, None, "unknown", "Yama forbids it"),
    # conf files
    ("without", "same", "took it", None, "same", "ok", "from a conf file: /etc/nccl.conf sets it"),
    ("without", "same", "no log", None, "same", "ok", "from a conf file"),
    ("without", "other", "took another", None, "other", "wrong", "from a conf file"),
    ("same", "same", "took it", None, "other", "ok", "sets Tree; the environment is stronger"),
]


@pytest.mark.parametrize(
    ("initial", "live", "effective", "above", "conf", "kind", "told"),
    CASES,
    ids=[", ".join(map(str, filter(None, case[:5]))) for case in CASES],
)
def test_each_case_has_its_verdict(initial, live, effective, above, conf, kind, told) -> None:
    """The verdict and the reason that a person is told."""
    seen = verdict("Ring", witnesses(initial, live, effective, above, conf))

    assert seen.kind == kind
    assert told in "; ".join((seen.why, *seen.notes, *seen.asides))


EVERY = list(itertools.product(STARTED_WITH, LIVE, EFFECTIVE, ABOVE, CONF))


@pytest.mark.parametrize("expected", ["Ring", None, Secret()])
def test_in_every_combination_a_verdict_says_what_a_witness_can_see(expected) -> None:
    """No verdict is stronger than the witnesses, and each that is not ok says why."""
    assert len(EVERY) == 8 * 4 * 9 * 3 * 3
    for case in EVERY:
        initial, live, effective, *_ = case
        seen = verdict(expected, witnesses(*case))
        read = effective in {"took it", "took another", "refused"}
        context = (expected, case, seen)
        if seen.kind == "missing":
            assert live == "without", context
            assert expected is not None, context
        if live == "blind" and not read:
            assert seen.kind == "unknown", context
            assert seen.way_out == "sysctl it", context
        if effective == "refused":
            assert seen.kind == "wrong", context
        if seen.kind == "ok" and expected == "Ring":
            assert live == "same" or effective == "took it", context
            assert effective not in {"took another", "refused"}, context
        if seen.kind == "ok" and expected is None:
            assert live == "without", context
            assert not read, context
        if seen.kind == "wrong":
            assert read or live in {"same", "other"}, context
        if seen.kind != "ok":
            assert seen.why != "", context
        if seen.kind in {"wrong", "missing"}:
            assert seen.way_out != "", context
        del initial


def test_a_blind_initial_witness_never_changes_what_the_live_one_says() -> None:
    """Whether the block is overwritten or unreadable, nothing is concluded from it."""
    blind = ["overwritten", "partly, nothing left", "unreadable", "empty"]
    for live, effective in itertools.product(LIVE, EFFECTIVE):
        kinds = {verdict("Ring", witnesses(each, live, effective)).kind for each in blind}
        assert len(kinds) == 1, (live, effective)


@pytest.mark.parametrize(
    ("expected", "taken", "kind", "notes"),
    [
        ("512", "512", "ok", ()),
        ("0x200", "512", "ok", ()),
        ("01000", "512", "ok", ()),
        ("4M", "4", "ok", ("NCCL reads 4M as 4",)),
        ("true", "0", "ok", ("NCCL reads true as 0",)),
        ("512", "500", "wrong", ()),
        ("4M", "4194304", "wrong", ()),
        ("10", "8", "wrong", ()),
        ("010", "8", "ok", ()),
    ],
)
def test_numbers_are_compared_as_nccl_reads_them(expected, taken, kind, notes) -> None:
    """The text in the environment and the number in the log are the same thing, or are not."""
    effective = attrs.evolve(MADE_TWO, values=(taken,), number=True)

    seen = verdict(expected, Witnesses(NTHREADS, live=Live(value=expected), effective=effective))

    assert (seen.kind, seen.notes) == (kind, (*notes, *seen.notes[len(notes) :]))


def test_a_number_in_another_spelling_is_the_same_number_to_nccl_alone() -> None:
    """Other programs may read the text."""
    start, spelled = Initial("whole", "0x40"), Live(value="0x40")

    assert verdict("64", Witnesses(NTHREADS, start, spelled)).kind == "ok"
    assert verdict("64", Witnesses("SGLANG_PORT", start, spelled)).kind == "wrong"


def test_a_number_may_have_been_read_with_one_rank_alone() -> None:
    """NCCL keeps numbers; algorithm and protocol it reads anew when there are more ranks."""
    late = Witnesses(NTHREADS, Initial("whole"), Live(value="512"), EFFECTIVE["one rank"])

    assert verdict("512", late).kind == "unknown"
    assert verdict("512", attrs.evolve(late, initial=Initial("whole", "512"))).kind == "ok"


def test_words_are_compared_letter_by_letter() -> None:
    """LL128 is not LL."""
    effective = attrs.evolve(MADE_TWO, values=("LL128",))

    assert verdict("LL", Witnesses("NCCL_PROTO", effective=effective)).kind == "wrong"


def test_a_text_that_is_logged_with_a_full_stop_is_the_same_text() -> None:
    """NCCL_COLLNET_ENABLE is logged so."""
    effective = attrs.evolve(MADE_TWO, values=("yes.",))

    assert verdict("yes", Witnesses("NCCL_COLLNET_ENABLE", effective=effective)).kind == "ok"


def test_a_communicator_made_without_it_is_told() -> None:
    """NCCL reads NCCL_ALGO for each: two communicators and one reading leave one without."""
    effective = attrs.evolve(MADE_TWO, values=("Ring",), complete=(2, 2))
    late = Witnesses(ALGO, STARTED_WITH["without"], LIVE["same"], effective)

    seen = verdict("Ring", late)

    assert (seen.kind, seen.why) == (
        "wrong",
        "NCCL made 1 of its 2 communicators without it",
    )


def test_an_earlier_communicator_with_another_value_is_told() -> None:
    """The last reading is not the only one that counts."""
    effective = attrs.evolve(MADE_TWO, values=("Tree", "Ring"), complete=(2, 2))

    seen = verdict("Ring", Witnesses(ALGO, STARTED_WITH["other"], LIVE["same"], effective))

    assert (seen.kind, seen.why) == (
        "wrong",
        "NCCL took Tree for an earlier communicator, and Ring since",
    )


def test_a_log_that_was_not_read_whole_proves_nothing_by_its_gaps() -> None:
    """The lines of another communicator may stand in what was left out."""
    cut = attrs.evolve(MADE_TWO, complete=(2, 2), cut=True)

    read_once = attrs.evolve(cut, values=("Ring",))

    for effective in (read_once, cut):
        seen = verdict("Ring", Witnesses(ALGO, STARTED_WITH["same"], LIVE["same"], effective))
        assert seen.kind == "ok"


@pytest.mark.parametrize(
    ("version", "value", "kind"),
    [
        ("2.21.5+cuda12.4", "Ring,Foo", "wrong"),
        ("2.21.5+cuda12.4", "^Tree,NVLS", "ok"),
        ("2.28.9+cuda13.0", "Ring,Foo", "ok"),  # that one would have refused it aloud
    ],
)
def test_a_word_that_an_old_nccl_ignores_is_not_in_effect(version, value, kind) -> None:
    """Up to 2.23 NCCL passes over what it does not know and switches the rest off."""
    effective = attrs.evolve(MADE_TWO, values=(value,), version=version)

    assert verdict(value, Witnesses(ALGO, live=Live(value=value), effective=effective)).kind == kind


def test_a_variable_that_nccl_never_logs_needs_no_proof() -> None:
    """Silence on NCCL_DEBUG is no sign of anything."""
    start = Initial("whole", "INFO")

    seen = verdict("INFO", Witnesses("NCCL_DEBUG", start, Live(value="INFO"), MADE_TWO))

    assert (seen.kind, seen.asides) == ("ok", ("NCCL's log never names it",))


def test_an_empty_value_is_a_value() -> None:
    """NCCL passes over it without a word, and it is in the environment."""
    empty = Witnesses(ALGO, Initial("whole", ""), Live(value=""), MADE_TWO)

    assert verdict("", empty).kind == "ok"
    assert verdict("Ring", empty).kind == "wrong"
    assert verdict("", Witnesses(ALGO, Initial("whole"), Live())).kind == "missing"


def test_a_variable_of_others_is_judged_by_the_environment_alone() -> None:
    """NCCL's log has no part in SGLANG_ and VLLM_ variables."""
    name = "SGLANG_ENABLE_X"

    late = verdict("1", Witnesses(name, Initial("whole"), Live(value="1"), NO_LOG))

    assert (late.kind, late.notes) == ("ok", ("set after start: it was started without it",))
    assert verdict("1", Witnesses(name, live=Live(value="2"))).kind == "wrong"


def test_a_variable_that_must_not_be_set_is_wrong_when_it_is() -> None:
    """A profile may take a variable away."""
    there = verdict(None, Witnesses(ALGO, live=Live(value="Tree")))

    assert (there.kind, there.why) == ("wrong", "it is set to Tree, and it should not be set")
    assert verdict(None, Witnesses(ALGO, live=Live())).kind == "ok"


@attrs.frozen
class Sets:
    """An override, as the engines package tells it."""

    name: str
    value: str | None
    forced: bool = True

    def told(self, engine: str) -> str:
        """In words."""
        return f"{engine} sets {self.name}={self.value}, whatever was set before"


def test_what_the_engine_does_is_told_as_the_engines_doing() -> None:
    """The launch is not to blame, and the way out is another one."""
    name = "CUDA_DEVICE_MAX_CONNECTIONS"
    known = Witnesses(
        name,
        Initial("whole", "1"),
        Live(value="8"),
        main=Ancestor(1, "1"),
        overrides=(Sets(name, "8"),),
        engine="SGLang",
    )

    seen = verdict("1", known)
    kept = verdict("8", attrs.evolve(known, initial=Initial("whole", "8"), main=Ancestor(1, "8")))
    unseen = verdict("1", attrs.evolve(known, initial=Initial("overwritten"), main=None))

    assert (seen.kind, seen.why) == ("wrong", "it is 8")
    assert seen.notes == (
        "changed after start: it was started with 1",
        "changed by the engine: SGLang sets CUDA_DEVICE_MAX_CONNECTIONS=8, whatever was set before",
    )
    assert seen.way_out == (
        "The engine sets it itself; the profile cannot, unless one of its flags does."
    )
    assert (kept.kind, kept.notes) == ("ok", ())
    fills_a_gap = attrs.evolve(known, overrides=(Sets(name, "8", forced=False),))
    assert verdict("1", fills_a_gap).way_out == SET_IT
    assert unseen.notes[0].startswith("the engine may have set it: SGLang sets ")


def test_what_stands_in_a_conf_file_is_undone_there() -> None:
    """The way out names the file."""
    seen = verdict("Ring", witnesses("without", "other", "took another", None, "other"))

    assert seen.way_out == (
        "Take it out of /etc/nccl.conf, or set it in the profile's env: that is stronger."
    )


def test_the_usual_way_out_is_the_profile() -> None:
    """A variable that each process starts with is there in time."""
    assert verdict("Ring", witnesses("without", "without")).way_out == SET_IT
    assert SET_IT == (
        "Set it in the profile's env, so that each process starts with it, and launch again."
    )


@pytest.mark.parametrize(
    ("name", "value", "kind", "why"),
    [
        (NTHREADS, "500", "wrong", "NCCL takes multiples of 32 from 64 to 512, not 500"),
        (NTHREADS, "1024", "wrong", "NCCL takes multiples of 32 from 64 to 512, not 1024"),
        (NTHREADS, "0", "ok", ""),
        (ALGO, "Foo", "unknown", "does not know Foo"),
        (ALGO, "allreduce:tree,ring;broadcast:^NVLS", "ok", ""),
        ("NCCL_PROTO", "ll,simple", "ok", ""),
        ("NCCL_P2P_LEVEL", "sys", "wrong", "which are told apart by case"),
        ("NCCL_P2P_LEVEL", "SYS", "ok", ""),
        ("NCCL_P2P_LEVEL", "5", "ok", ""),
        ("NCCL_P2P_LEVEL", "NEAR", "unknown", "NCCL's words for it are LOC"),
    ],
)
def test_what_nccl_would_not_accept_is_not_called_right(name, value, kind, why) -> None:
    """Where its log does not say so, the known rules do; where NCCL is absent it is a remark."""
    witnesses = Witnesses(name, Initial("whole", value), Live(value=value), NO_LOG)

    seen = verdict(value, witnesses)
    absent = verdict(value, attrs.evolve(witnesses, effective=EFFECTIVE["no NCCL"]))

    assert seen.kind == kind
    assert why in seen.why
    assert absent.kind == "ok"
    assert why in "".join(absent.notes)


def test_a_secret_is_compared_without_being_seen() -> None:
    """By the digests of one reading."""
    token = Secret.of("ab", "hf_x")

    assert (
        verdict(token, Witnesses("HF_TOKEN", live=Live(value=Secret.of("ab", "hf_x")))).kind == "ok"
    )
    other = verdict(token, Witnesses("HF_TOKEN", live=Live(value=Secret.of("ab", "hf_y"))))
    assert (other.kind, other.why) == ("wrong", "it is <redacted>")
    assert verdict(token, Witnesses("HF_TOKEN", live=Live())).kind == "missing"


def test_a_secret_that_nobody_recorded_is_not_called_right() -> None:
    """That it is there can be told; that it is the right one cannot."""
    seen = verdict(Secret(), Witnesses("HF_TOKEN", live=Live(value=Secret.of("ab", "hf_x"))))

    assert (seen.kind, seen.way_out) == (
        "unknown",
        "Verify with the profile at hand (--profile), or launch again.",
    )
