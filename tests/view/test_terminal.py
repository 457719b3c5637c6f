"""A view in a terminal does nothing but stand there, whatever text it holds."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from eagleops.errors import CheckFailed
from eagleops.render.console import show_error
from eagleops.view import Column, Table, Text, View

HOSTILE = "a\x1b[2J\x1b]0;title\x07b\x08\r\x9b1Ac"
NAMED = r"a\x1b[2J\x1b]0;title\x07b\x08\r\x9b1Ac"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def test_no_text_of_a_view_moves_the_cursor() -> None:
    """Title, heading, cell, note, conclusion, and what stands for rows that are not there."""
    filled = Table((Column(HOSTILE),), ((HOSTILE,), (Text(HOSTILE),)), title=HOSTILE)
    empty = Table((Column("a"),), (), title=HOSTILE, empty=HOSTILE)
    drawn = io.StringIO()

    Console(file=drawn, width=200).print(View((filled, empty), Text(HOSTILE), (Text(HOSTILE),)))

    assert CONTROL.findall(drawn.getvalue()) == []
    assert drawn.getvalue().count(NAMED) == 8


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_no_word_of_a_table_is_lost_however_narrow_the_terminal(width: int) -> None:
    """What must not wrap does where it would leave no room to the message beside it."""
    columns = (Column("host", wrap=False), Column("check", wrap=False), Column("seen"))
    row = ("a-long-host-name-01", "speed:eagle3-2step", "slower since 2026-11-28")
    drawn = io.StringIO()

    Console(file=drawn, width=width).print(View((Table(columns, (row,)),)))

    lines = drawn.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    for cell in (*row, *(column.heading for column in columns)):
        letters = iter("".join(drawn.getvalue().split()))
        assert all(letter in letters for letter in "".join(cell.split())), cell


def test_no_text_of_an_error_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither its first line nor the way out."""
    show_error(CheckFailed(problem=HOSTILE, where=HOSTILE, way_out=HOSTILE))

    told = capsys.readouterr().err
    assert CONTROL.findall(told) == []
    assert told.count(NAMED) == 3


def test_a_column_with_nothing_in_it_takes_no_room() -> None:
    """It is left out where no row has a word for it, and stands where one has."""
    columns = tuple(map(Column, ("PID", "container", "process")))
    bare = Table(columns, (("1", "", "a"), ("2", "", "b")))
    told = Table(columns, (("1", "", "a"), ("2", "lxc/129", "b")))

    left = bare.without_bare("container")

    assert [column.heading for column in left.columns] == ["PID", "process"]
    assert left.rows == (("1", "a"), ("2", "b"))
    assert told.without_bare("container") == told
