"""The initial witness: what the bytes of /proc/PID/environ say, and what they cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.environ_block import (
    EMPTY,
    OVERWRITTEN,
    PARTLY_OVERWRITTEN,
    WHOLE,
    Block,
    parse,
)

NAMES = st.text("ABCDEFGHIJ_0123456789é", min_size=1).map(str.encode)
TEXTS = st.binary(max_size=40).map(lambda value: value.replace(b"\0", b"?"))
STRINGS = st.lists(st.builds(lambda n, v: n + b"=" + v, NAMES, TEXTS), min_size=1)


def block(strings: list[bytes]) -> bytes:
    """The strings as exec lays them down."""
    return b"".join(string + b"\0" for string in strings)


@pytest.mark.parametrize(
    ("content", "state", "variables", "overwritten"),
    [
        pytest.param(b"A=1\0B=2\0", WHOLE, {b"A": b"1", b"B": b"2"}, 0, id="whole"),
        pytest.param(b"A=\0", WHOLE, {b"A": b""}, 0, id="empty value"),
        pytest.param(b"A=1=2\0", WHOLE, {b"A": b"1=2"}, 0, id="equals sign in the value"),
        pytest.param(b"A=1\0A=2\0", WHOLE, {b"A": b"1"}, 0, id="twice: getenv finds the first"),
        pytest.param(b"A=\xff\xfe\0", WHOLE, {b"A": b"\xff\xfe"}, 0, id="not UTF-8"),
        pytest.param(b"\0" * 40, OVERWRITTEN, {}, 40, id="all zeros"),
        pytest.param(
            b"\0" * 10 + b"A=1\0", PARTLY_OVERWRITTEN, {b"A": b"1"}, 10, id="zeros, then the rest"
        ),
        pytest.param(
            b"TP3\0\0\0A=1\0", PARTLY_OVERWRITTEN, {b"A": b"1"}, 6, id="a title, zeros, the rest"
        ),
        pytest.param(b"TP3     \0", OVERWRITTEN, {}, 9, id="a title and blanks"),
        pytest.param(b"sglang::sch", OVERWRITTEN, {}, 11, id="a title up to the last byte"),
        pytest.param(
            b"A=1\0P=\0\0\0\0B=2\0",
            PARTLY_OVERWRITTEN,
            {b"A": b"1", b"B": b"2"},
            0,
            id="a value wiped out in the middle",
        ),
        pytest.param(b"A=1\0B=2", PARTLY_OVERWRITTEN, {b"A": b"1"}, 0, id="no zero at the end"),
    ],
)
def test_a_block_says_how_far_it_can_be_believed(content, state, variables, overwritten) -> None:
    """What was written over is told from what exec laid, without knowing who wrote."""
    seen = parse(content)

    assert (seen.state, seen.variables, seen.overwritten_bytes) == (state, variables, overwritten)


def test_no_block_is_not_an_overwritten_one() -> None:
    """A kernel thread has no block; a program started with no variable has a whole one."""
    assert parse(b"") == Block(EMPTY, {}, (), 0, 0)
    assert parse(b"", region_bytes=0) == Block(WHOLE, {}, (), 0, 0)


def test_a_block_that_could_not_be_read_to_its_end_says_nothing_of_the_rest() -> None:
    """Fewer bytes than the region holds: what is missing may have stood behind."""
    assert parse(b"A=1\0", region_bytes=100).state == PARTLY_OVERWRITTEN


def test_strings_without_a_name_are_kept_apart() -> None:
    """Exec takes any strings; those that getenv cannot find are counted, not lost."""
    seen = parse(b"A=1\0plain\0=odd\0", title_runs_on=False)

    assert (seen.state, seen.variables, seen.nameless) == (WHOLE, {b"A": b"1"}, (b"plain", b"=odd"))


def test_a_name_without_a_sign_at_the_start_is_doubted_only_while_it_could_be_a_title() -> None:
    """Where argv is known to end in a zero, no title has run on into the block."""
    assert parse(b"plain\0A=1\0", title_runs_on=False).state == WHOLE
    assert parse(b"plain\0A=1\0").state == OVERWRITTEN


def test_a_title_with_an_equals_sign_is_no_variable() -> None:
    """A long title may read like NAME=VALUE, and cuts the variable behind it in two."""
    content = b"model=/m --port=1\0TO=LL\0NCCL_ALGO=Ring\0"

    seen = parse(content, title_runs_on=True)

    assert (seen.state, seen.variables) == (PARTLY_OVERWRITTEN, {b"NCCL_ALGO": b"Ring"})


@given(STRINGS)
def test_what_exec_laid_down_is_whole(strings: list[bytes]) -> None:
    """No environment that exec can lay down is taken for an overwritten one."""
    seen = parse(block(strings), len(block(strings)), title_runs_on=False)

    assert seen.state == WHOLE
    assert seen.variables == {
        name: value for name, _, value in (s.partition(b"=") for s in reversed(strings))
    }


@given(STRINGS, st.integers(1, 2000))
def test_zeros_over_whole_strings_leave_the_others_readable(strings, count) -> None:
    """However many strings a title library took, the rest is told and nothing is invented."""
    taken = min(count, len(strings))
    content = bytes(len(block(strings[:taken]))) + block(strings[taken:])

    seen = parse(content, len(content), title_runs_on=False)

    assert seen.state == (OVERWRITTEN if taken == len(strings) else PARTLY_OVERWRITTEN)
    assert seen.overwritten_bytes == len(block(strings[:taken]))
    assert set(seen.variables.items()) <= {tuple(s.split(b"=", 1)) for s in strings[taken:]}


@given(STRINGS, st.text("abc:_ ", min_size=1, max_size=200), st.sampled_from([b"\0", b" ", None]))
def test_no_title_passes_for_a_whole_block(strings, title, fill) -> None:
    """A title that reaches into the block is noticed, whatever stands behind it."""
    content = block(strings)
    wanted = title.encode()[: len(content) - 1]
    if not wanted:
        return
    over = (wanted + b"\0") if fill is None else wanted.ljust(len(content) - 1, fill) + b"\0"
    written = over + content[len(over) :]

    seen = parse(written, len(written), title_runs_on=True)

    assert seen.state != WHOLE
    assert set(seen.variables.items()) <= {tuple(s.split(b"=", 1)) for s in strings}


@given(st.binary(max_size=400), st.none() | st.integers(0, 500), st.none() | st.booleans())
def test_any_bytes_are_read(content, region, runs_on) -> None:
    """No block makes the parser fail, and none that has meeting zeros is called whole."""
    seen = parse(content, region, runs_on)

    assert seen.state in {WHOLE, PARTLY_OVERWRITTEN, OVERWRITTEN, EMPTY}
    assert not (seen.state == WHOLE and b"\0\0" in content)
