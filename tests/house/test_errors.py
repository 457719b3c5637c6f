"""An error says all it has to say, on lines or in one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.errors import ConnectFailed, EagleError


def test_an_error_in_a_line_keeps_its_sentences_apart() -> None:
    """Where it is, what is wrong, and the way out."""
    error = ConnectFailed(problem="nobody answers", where="pve", way_out="Look at its cable.")

    assert error.in_a_line == "pve: nobody answers. Look at its cable."
    assert EagleError(problem="it is full.\n", way_out="Make room.").in_a_line == (
        "it is full. Make room."
    )
    assert EagleError(problem="nothing else").in_a_line == "nothing else"


@pytest.mark.parametrize("problem", ["", " \n\t\n"])
def test_an_error_without_a_text_is_an_empty_line(problem: str) -> None:
    """Whoever tells an error in a line has no error of his own then."""
    assert EagleError(problem=problem).in_a_line == ""
    assert EagleError(problem=problem, way_out="Make room.").in_a_line == "Make room."


@given(st.text(), st.text(), st.text())
def test_any_error_is_told_in_one_line(problem: str, where: str, way_out: str) -> None:
    """Whatever a machine said: every word of it stands there, and no line ends before the last."""
    error = EagleError(problem=problem, where=where, way_out=way_out)

    line = error.in_a_line

    assert len(line.splitlines()) <= 1
    assert len(line.split()) == len(str(error).split())
