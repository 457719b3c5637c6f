"""A view's HTML is safe for whatever text it holds."""

from __future__ import annotations

from eagleops.view import Column, Table, Text, View

HOSTILE = "<script>alert('&')</script>"


def test_no_text_of_a_view_becomes_markup() -> None:
    """Title, heading, cell, note, conclusion, and what stands for rows that are not there."""
    filled = Table((Column(HOSTILE),), ((HOSTILE,), (Text(HOSTILE),)), title=HOSTILE)
    empty = Table((Column("a"),), (), title=HOSTILE, empty=HOSTILE)

    drawn = View((filled, empty), Text(HOSTILE), (Text(HOSTILE),)).to_html()

    assert "<script" not in drawn
    assert drawn.count("&lt;script&gt;") == 8
