"""Server-sent events: whatever the chunks, the same events."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.streaming.sse import Event, SseParser

STREAMS = Path(__file__).resolve().parents[1] / "data" / "streams"


def parsed(*chunks: bytes) -> list[Event]:
    """The events of a stream that comes in these chunks."""
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """``data`` cut at these places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[a:b] for a, b in itertools.pairwise([0, *places, len(data)])]


LINE = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]))
DATA = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
END = st.sampled_from(["\n", "\r\n", "\r"])
NOISE = st.sampled_from([": keep-alive", ":", "id: 7", "retry: 10", "event: note", "nonsense"])


@st.composite
def streams(draw) -> tuple[bytes, list[str]]:
    """A stream as bytes, and its events' data."""
    text, expected = "", []
    end = draw(END)
    for data in draw(st.lists(DATA, max_size=5)):
        lines = [f"data: {line}" for line in data.split("\n")]
        for noise in draw(st.lists(NOISE, max_size=2)):
            lines.insert(draw(st.integers(0, len(lines))), noise)
        text += "".join(line + end for line in lines) + end
        expected.append(data)
    return text.encode(), expected


@given(streams(), st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_gives_the_same_events(stream: tuple[bytes, list[str]], cuts: list[int]) -> None:
    """Chunks may break lines, characters and line ends: the events are those that were sent."""
    data, expected = stream

    assert [event.data for event in parsed(*split(data, cuts))] == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 10_000), max_size=8))
def test_any_bytes_give_the_same_events_however_they_come(data: bytes, cuts: list[int]) -> None:
    """Bytes that are no UTF-8 and no stream are read alike in one piece and in many."""
    assert parsed(*split(data, cuts)) == parsed(data)


@pytest.mark.parametrize("name", ["eagle3_generate_stream", "eagle3_completions_stream"])
def test_a_captured_stream_byte_by_byte(name: str) -> None:
    """What a real SGLang sent gives the same events byte by byte, and ends with [DONE]."""
    data = (STREAMS / f"{name}.sse").read_bytes()

    events = parsed(*(data[at : at + 1] for at in range(len(data))))

    assert events == parsed(data)
    assert [event.is_done for event in events][-1] is True


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [Event("a")]),
        (b"data:a\n\n", [Event("a")]),
        (b"data:  a\n\n", [Event(" a")]),
        (b"data\n\n", [Event("")]),
        (b"data: a\ndata: b\n\n", [Event("a\nb")]),
        (b"event: error\ndata: a\n\n", [Event("a", "error")]),
        (b": ping\n\n: ping\n\ndata: a\n\n", [Event("a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event("a"), Event("b")]),
        (b"data: a", []),
        (b"data: a\n", []),
        (b"event: a\n\n", []),
        (b"data: \xff\n\n", [Event("\N{REPLACEMENT CHARACTER}")]),
        (b"data: [DONE]\n\n", [Event("[DONE]")]),
    ],
)
def test_the_standard_s_cases(stream: bytes, events: list[Event]) -> None:
    """Fields, comments, line ends, the byte order mark, and what the stream's end cuts off."""
    assert parsed(stream) == events
