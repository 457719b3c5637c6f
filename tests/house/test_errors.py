"""An error says all it has to say, on lines or in one."""

from __future__ import annotations

from eagleops.errors import ConnectFailed, EagleError


def test_an_error_in_a_line_keeps_its_sentences_apart() -> None:
    """Where it is, what is wrong, and the way out."""
    error = ConnectFailed(problem="nobody answers", where="pve", way_out="Look at its cable.")

    assert error.in_a_line == "pve: nobody answers. Look at its cable."
    assert EagleError(problem="it is full.\n", way_out="Make room.").in_a_line == (
        "it is full. Make room."
    )
    assert EagleError(problem="nothing else").in_a_line == "nothing else"
