"""A profile's ``sim:`` section."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.sim import settings
from eagleops.sim.settings import Settings, SimError


def test_an_empty_section_is_the_teams_server() -> None:
    """82.2 tok/s plain; with speculation 30.6 ms a cycle and 1.84 tokens."""
    told = Settings.parse("{}")

    assert (told.tok_s, told.cycle_ms, told.accept_length) == (82.2, 30.6, 1.84)


def test_whole_numbers_may_be_written_for_others() -> None:
    """YAML makes an int of 80."""
    assert Settings.parse('{"tok_s": 80}').tok_s == 80.0


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ({"toks": 1}, "no such value in `sim:`: toks"),
        ({"tok_s": "fast"}, "`sim: tok_s` is float, not 'fast'"),
        ({"seed": True}, "`sim: seed` is int, not True"),
        ({"orphans": 1}, "`sim: orphans` is bool, not 1"),
        ({"cycle_ms": 0}, "`sim: cycle_ms` must be above 0, not 0"),
        ({"accept_length": 0.5}, "`sim: accept_length` counts the target's own token"),
        ({"fail": "nuclear"}, "not nuclear"),
    ],
)
def test_what_cannot_be_followed_is_named(section: dict[str, Any], sentence: str) -> None:
    """The key, what it takes, and what it got."""
    with pytest.raises(SimError, match=re.escape(sentence)):
        Settings.parse(json.dumps(section))


@given(st.dictionaries(st.sampled_from(Settings._fields), st.floats(1, 2) | st.booleans()))
def test_a_section_is_followed_or_refused(section: dict[str, Any]) -> None:
    """Never half of it."""
    try:
        told = Settings.parse(json.dumps(section))
    except SimError:
        return
    assert {name: getattr(told, name) for name in section} == section


def test_each_value_and_failure_is_documented() -> None:
    """The module's table names every value, and no other."""
    named = set(re.findall(r"^``(\w+)``", settings.__doc__ or "", re.MULTILINE))

    assert named == set(Settings._fields)
