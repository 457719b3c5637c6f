"""Values: numbers as NCCL reads them, and secrets that can be compared and not seen."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.environment.values import (
    Secret,
    quoted,
    same,
    same_number,
    shown,
)
from eagleops.knowledge.numbers import is_number, nccl_number

STRTOLL = ctypes.CDLL(None).strtoll
STRTOLL.restype = ctypes.c_longlong
STRTOLL.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("16777216", 16777216),
        ("4M", 4),
        ("010", 8),
        ("0x100000", 1048576),
        ("abc", 0),
        ("true", 0),
        ("1e6", 1),
        ("", 0),
        (" 7 ", 7),
        ("-2", -2),
        ("0x", 0),
        ("08", 0),
        ("9223372036854775807", 2**63 - 1),
        ("9223372036854775808", None),
    ],
)
def test_numbers_are_read_as_nccl_reads_them(text: str, number: int | None) -> None:
    """As strtoll does with base 0, whatever stands behind the digits."""
    assert nccl_number(text) == number


@given(st.text(st.sampled_from("0123456789abcdefxXM-+ \t."), max_size=24))
def test_numbers_agree_with_the_c_librarys(text: str) -> None:
    """For every text the C library's own strtoll is the judge."""
    number = nccl_number(text)

    assert STRTOLL(text.encode(), None, 0) == number or number is None


def test_whole_numbers_are_told_from_what_only_begins_like_one() -> None:
    """4M is 4 to NCCL, but nobody meant that."""
    assert [text for text in ("4", "0x10", "010", "-1") if not is_number(text)] == []
    assert [text for text in ("4M", "1e6", "", "LL", "08", " 4") if is_number(text)] == []


def test_numbers_are_the_same_in_any_spelling_and_words_are_not() -> None:
    """LL and LL128 both read as 0, and are not the same."""
    assert same_number("0x10", "16") is True
    assert same_number("010", "8") is True
    assert same_number("LL", "LL128") is False
    assert same_number("4M", "4") is False
    assert same_number("4", None) is False


@given(st.text(), st.text(), st.text("0123456789abcdef", min_size=1))
def test_secrets_are_equal_when_their_texts_are(one: str, other: str, salt: str) -> None:
    """A digest tells equality, with a text or with another digest of the same reading."""
    secret = Secret.of(salt, one)

    assert same(one, secret) is True
    assert same(other, secret) is (one == other)
    assert same(secret, Secret.of(salt, other)) is (one == other)
    assert same(secret, other) is (one == other)


def test_a_secret_is_never_shown() -> None:
    """Neither in a report nor in a sentence."""
    secret = Secret.of("00", "hf_abc")

    assert (shown(secret), quoted(secret)) == ("<redacted>", "<redacted>")
    assert "hf_abc" not in repr(secret)


def test_a_secret_that_was_not_recorded_equals_nothing() -> None:
    """It can be neither confirmed nor refuted."""
    assert same(Secret(), Secret()) is False
    assert same(Secret(), "") is False


def test_values_stand_in_sentences_so_that_their_ends_are_seen() -> None:
    """Blanks and emptiness are quoted."""
    assert [quoted(each) for each in ("LL", "", "a b", None)] == ["LL", "''", "'a b'", "nothing"]


def test_no_value_reaches_a_terminal_as_a_command() -> None:
    """Control characters and bytes that are no text are escaped."""
    assert quoted("\x1b[31m") == r"'\x1b[31m'"
    assert quoted(b"\xff".decode("utf-8", "surrogateescape")) == r"\xff"
    assert shown("é\udcff") == r"é\xff"
