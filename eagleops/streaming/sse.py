"""Server-sent events, read from bytes as they come: whatever the chunks, the same events.

Follows the standard's parsing of an event stream (html.spec.whatwg.org, section 9.2.6): lines
end with LF, CR or CRLF, a line that begins with a colon is a comment (a keep-alive), several
``data`` lines are one text. An event that the stream's end cuts off is no event.
"""

from __future__ import annotations

import codecs

import attrs

DONE = "[DONE]"
"""What OpenAI's API and its followers send as the last event's data."""


@attrs.frozen
class Event:
    """One event.

    Attributes:
        data: Its text; that of several ``data`` lines has a line feed between them.
        name: Its ``event`` field; empty where it has none.
    """

    data: str
    name: str = ""

    @property
    def is_done(self) -> bool:
        """Whether it is the word that the reply is over."""
        return self.data.strip() == DONE


class SseParser:
    """Reads one stream. Bytes that are no UTF-8 become replacement characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False
        self._rest = ""
        self._after_cr = False
        self._data: list[str] = []
        self._name = ""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that ``chunk`` completes."""
        text = self._decoder.decode(chunk)
        if text and not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        return [event for line in self._lines(text) if (event := self._take(line)) is not None]

    def _lines(self, text: str) -> list[str]:
        """The lines that ``text`` completes, without their ends."""
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r") or (self._after_cr and not text)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        *lines, rest = text.split("\n")
        if not lines:
            self._rest += rest
            return []
        lines[0] = self._rest + lines[0]
        self._rest = rest
        return lines

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._dispatched()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

    def _dispatched(self) -> Event | None:
        data, name = self._data, self._name
        self._data, self._name = [], ""
        return Event("\n".join(data), name) if data else None
