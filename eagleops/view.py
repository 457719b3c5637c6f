"""What a result looks like, as data: one description, drawn in a terminal and in a notebook.

A view holds no logic and does no I/O. ``rich`` is loaded when a terminal draws it.
"""

from __future__ import annotations

import html
import re
from enum import Enum
from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, Group, RenderableType
    from rich.text import Text as RichText

# A word or two of a message, in columns of a terminal; and what stands between two columns.
_READABLE, _GAP = 12, 3
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Tone(Enum):
    """What a text says beside its words; the words must say it too."""

    PLAIN = ""
    GOOD = "green"
    BAD = "bold red"
    WARNING = "yellow"
    DIM = "dim"


# On white and on black alike, each of these has a contrast of at least 4.5 to 1 with the
# background that the notebook theme gives; DIM is told by opacity alone.
_CSS = {
    Tone.PLAIN: "",
    Tone.GOOD: "color:#188038",
    Tone.BAD: "color:#d93025;font-weight:600",
    Tone.WARNING: "color:#b06000",
    Tone.DIM: "opacity:.65",
}


@attrs.frozen
class Text:
    """A text and its tone."""

    text: str
    tone: Tone = Tone.PLAIN


Cell = str | Text


@attrs.frozen
class Column:
    """A column's heading and how its cells align."""

    heading: str
    align: Literal["left", "right"] = "left"
    wrap: bool = True


@attrs.frozen
class Table:
    """Rows under columns.

    Attributes:
        empty: What stands in place of the rows where there are none.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    empty: str = "none"

    def without_bare(self, heading: str) -> Table:
        """The table less the column of that heading, where it has nothing in any row."""
        place = [column.heading for column in self.columns].index(heading)
        if any(cell_text(row[place]) for row in self.rows):
            return self
        return attrs.evolve(
            self,
            columns=self.columns[:place] + self.columns[place + 1 :],
            rows=tuple(row[:place] + row[place + 1 :] for row in self.rows),
        )


@attrs.frozen
class View:
    """A result: tables, and under them one line that says what they mean."""

    tables: tuple[Table, ...] = ()
    conclusion: Text = Text("")
    notes: tuple[Text, ...] = ()

    def to_html(self) -> str:
        """A fragment of HTML with its styles inline, safe for whatever text it holds."""
        parts = [_table_html(table) for table in self.tables]
        parts += [f"<p>{_cell_html(note)}</p>" for note in self.notes]
        if self.conclusion.text:
            parts.append(f"<p><strong>{_cell_html(self.conclusion)}</strong></p>")
        return f'<div class="eagleops">{"".join(parts)}</div>'

    def __rich__(self) -> Group:
        from rich.console import Group

        drawn: list[RenderableType] = [_Drawn(table) for table in self.tables]
        drawn += [_rich_cell(note) for note in self.notes]
        if self.conclusion.text:
            drawn.append(_rich_cell(self.conclusion))
        return Group(*drawn)


def cell_text(cell: Cell) -> str:
    """The words of a cell."""
    return cell if isinstance(cell, str) else cell.text


def for_terminal(text: str) -> str:
    r"""A text that moves no cursor and sets no title: what would is named, ``\x1b``.

    It may be what a machine said, or a program on it.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _cell_html(cell: Cell) -> str:
    text = html.escape(cell_text(cell)).replace("\n", "<br>")
    css = "" if isinstance(cell, str) else _CSS[cell.tone]
    return f'<span style="{css}">{text}</span>' if css else text


def _table_html(table: Table) -> str:
    caption = f"<caption>{html.escape(table.title)}</caption>" if table.title else ""
    if not table.rows:
        lead = f"{table.title}: " if table.title else ""
        return f"<p>{html.escape(lead + table.empty)}</p>"
    styles = [
        f"text-align:{column.align};vertical-align:top;padding:.2em .8em .2em 0"
        for column in table.columns
    ]
    head = "".join(
        f'<th scope="col" style="{style}">{html.escape(column.heading)}</th>'
        for column, style in zip(table.columns, styles, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{style}">{_cell_html(cell)}</td>'
            for cell, style in zip(row, styles, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    # A wide table scrolls inside its own box: a phone's page stays still.
    return (
        f'<div style="overflow-x:auto"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


@attrs.frozen
class _Drawn:
    """A table in a terminal, as wide as that one is.

    Where what must not wrap would leave no room to what may, all of it wraps: a message that is
    cut off says nothing.
    """

    table: Table

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        whole = [_width(self.table, place) for place in range(len(self.table.columns))]
        least = [
            min(width, _READABLE) if column.wrap else width
            for column, width in zip(self.table.columns, whole, strict=True)
        ]
        fits = sum(least) + _GAP * len(least) <= options.max_width
        yield _rich_table(self.table, wrap=not fits)


def _width(table: Table, place: int) -> int:
    """The columns of a terminal that the longest line of a table's column takes."""
    from rich.cells import cell_len

    cells = (table.columns[place].heading, *(cell_text(row[place]) for row in table.rows))
    return max(cell_len(line) for cell in cells for line in cell.split("\n"))


def _rich_table(table: Table, *, wrap: bool) -> RenderableType:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    if not table.rows:
        lead = f"{table.title}: " if table.title else ""
        return _rich(f"{lead}{table.empty}", "dim")
    drawn = RichTable(
        title=_rich(table.title, "bold") if table.title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        header_style="bold",
    )
    for column in table.columns:
        drawn.add_column(
            _rich(column.heading),
            justify=column.align,
            no_wrap=not (column.wrap or wrap),
            overflow="fold" if column.wrap or wrap else "ellipsis",
        )
    for row in table.rows:
        drawn.add_row(*map(_rich_cell, row))
    return drawn


def _rich_cell(cell: Cell) -> RichText:
    return _rich(cell_text(cell), "" if isinstance(cell, str) else cell.tone.value)


def _rich(text: str, style: str = "") -> RichText:
    from rich.text import Text as RichText

    return RichText(for_terminal(text), style=style)
