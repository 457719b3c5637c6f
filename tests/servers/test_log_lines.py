"""A log as lines: whatever is written, and however it is cut into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote import log_lines
from eagleops.remote.log_lines import CUT, MAX_LINE_BYTES, LineSplitter, LogFollower


def split(*pieces: bytes) -> list[bytes]:
    """All lines of a stream."""
    splitter = LineSplitter()
    lines = [line for piece in pieces for line in splitter.feed(piece)]
    return lines + splitter.flush()


@given(st.binary(), st.lists(st.integers(0, 50)))
def test_the_pieces_make_no_difference(data, sizes) -> None:
    """Without carriage returns: the lines of the whole, wherever it was cut."""
    data = data.replace(b"\r", b"x")
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    pieces.append(data[at:])

    lines = data.split(b"\n")
    assert split(*pieces) == (lines if lines[-1] else lines[:-1])


@given(st.lists(st.binary(max_size=30)))
def test_a_carriage_return_never_loses_what_a_terminal_would_show(pieces) -> None:
    """Each line ends in what was written last into it."""
    text = b"".join(pieces)
    finals = []
    for line in text.split(b"\n"):
        final = line.rstrip(b"\r").rpartition(b"\r")[2]
        finals.append(final)
    if not text.split(b"\n")[-1].rstrip(b"\r"):
        finals.pop()

    lines = split(*pieces)

    remaining = iter(lines)
    assert all(any(line == final for line in remaining) for final in finals)


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([b"a\r\nb\r\n"], [b"a", b"b"]),
        ([b"a\r", b"\nb"], [b"a", b"b"]),
        ([b"0%\r50%\r100%\n"], [b"100%"]),
        ([b"\r0%", b"\r50%", b"\r100%", b"\n"], [b"0%", b"50%", b"100%"]),
        ([b"\r0%\r10%\r20%", b"\r30%\n"], [b"10%", b"30%"]),
        ([b"a\r\r\n"], [b"a"]),
        ([b"\r\n\r\n"], [b"", b""]),
        ([b""], []),
    ],
)
def test_progress_bars(pieces, lines) -> None:
    """The latest state of each piece; the last one of a whole line."""
    assert split(*pieces) == lines


def test_a_long_line_is_cut_and_that_is_said() -> None:
    """Memory stays bounded, however long the line."""
    pieces = [b"x" * 1_000_000] * 10 + [b"\nnext\n"]

    assert split(*pieces) == [
        b"x" * MAX_LINE_BYTES + CUT.format(10_000_000 - MAX_LINE_BYTES).encode(),
        b"next",
    ]


def test_a_follower_that_falls_behind_skips_and_says_so(tmp_path) -> None:
    """It never reads more than it can show."""
    log = tmp_path / "log"
    log.write_bytes(b"first\n")
    follower = LogFollower(str(log))
    assert follower.read() == [b"first"]
    with log.open("ab") as file:
        file.write(b"y" * 79 + b"\n")
        for _ in range(100):
            file.write((b"x" * 79 + b"\n") * 1000)
        file.write(b"last\n")

    lines = follower.finish()

    skipped = 80 + 8_000_000 + 5 - log_lines.MAX_READ_BYTES
    assert lines[0] == f"[... {skipped} bytes of the log skipped ...]".encode()
    assert (lines[1], lines[-1]) == (b"x" * 79, b"last")


def test_an_emptied_log_is_read_from_its_new_begin(tmp_path) -> None:
    """Somebody may truncate it to make room."""
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\n")
    follower = LogFollower(str(log))
    follower.read()

    log.write_bytes(b"new\n")

    assert follower.read() == [b"new"]


def test_a_backlog_begins_with_a_whole_line(tmp_path) -> None:
    """Half a line would look like one."""
    log = tmp_path / "log"
    log.write_bytes(b"0123456789\nabc\n")

    assert LogFollower(str(log), backlog_bytes=8).finish() == [b"abc"]


def test_a_backlog_without_an_end_of_line_is_shown(tmp_path) -> None:
    """A last line that is longer than the backlog is all there is."""
    log = tmp_path / "log"
    log.write_bytes(b"0123456789")

    assert LogFollower(str(log), backlog_bytes=4).finish() == [b"6789"]


def test_no_log_is_no_line(tmp_path) -> None:
    """A server that has not started yet has none."""
    follower = LogFollower(str(tmp_path / "none"))

    assert (follower.read(), follower.finish()) == ([], [])
