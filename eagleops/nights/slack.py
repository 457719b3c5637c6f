"""A night's message in the shape that an incoming webhook of Slack takes.

What must be escaped: https://docs.slack.dev/messaging/formatting-message-text. Limits:
https://docs.slack.dev/reference/block-kit/blocks (50 blocks a message, 3000 characters a
section). A message is refused earlier than that, at some 13,000 characters
(https://github.com/slackapi/bolt-js/issues/2509), so what does not fit is counted.

What machines say stands in texts of the type ``plain_text``: in the other, ``mrkdwn``, a file
called ``__init__.py`` loses its underscores, and Slack has no escape for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eagleops.nights.one_line import one_line
from eagleops.nights.summary import TITLES
from eagleops.phrases import counted, minute

BLOCK_CHARS = 3000
# Of the faults' lines; the summary and the report's place come to some thousand more.
LINES_CHARS = 9000
NAME_CHARS = 150
SAID_CHARS = 600
PLACE_CHARS = 1000
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def shaped(told: Mapping[str, Any]) -> dict[str, Any]:
    """The message as ``text``, which notifications show, and ``blocks``, which channels do.

    Args:
        told: What :func:`eagleops.nights.message.json_message` gave.
    """
    line = escaped(told["summary"], BLOCK_CHARS)
    foot = [f"Night of {minute(told['began_utc'])}"]
    foot += [f"by {told['client']}"] if told["client"] else []
    foot += [f"Report: {told['report']}"] if told["report"] else []
    blocks = [_section(_plain(line)), *map(_section, _packed(_lines(told)))]
    elements = [_plain(escaped(text, PLACE_CHARS)) for text in foot]
    return {"text": line, "blocks": [*blocks, {"type": "context", "elements": elements}]}


def escaped(text: str, most: int) -> str:
    """A text on one line in which Slack finds no mention, link or entity; cut at ``most``.

    Args:
        text: Any.
        most: The characters that Slack may count; an escaped one counts as what it is written
            as, and one beyond 16 bits as two.
    """
    line = one_line(text, most)
    written = [_ESCAPES.get(character, character) for character in line]
    if sum(map(width, written)) <= most:
        return "".join(written)
    room = most - 1
    kept = []
    for piece in written:
        room -= width(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + "…"


def width(text: str) -> int:
    """How many characters Slack may count: UTF-16's, the most that any reading of it gives."""
    return len(text.encode("utf-16-le")) // 2


def _section(text: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "section", "text": dict(text)}


def _plain(text: str) -> dict[str, Any]:
    # Without emoji: a check called "gpu:fire:" is no fire.
    return {"type": "plain_text", "text": text, "emoji": False}


def _lines(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each fault's title and line, the news first."""
    for group, title in TITLES.items():
        for fault in told[group]:
            yield title, _line(fault, ended=group == "ended")


def _line(fault: Mapping[str, Any], *, ended: bool) -> str:
    head = f"• {escaped(fault['host'], NAME_CHARS)}: {escaped(fault['check'], NAME_CHARS)}"
    if ended:
        nights = counted(fault["nights"], "night")
        head += f", since {fault['began_utc'][:10]}, seen in {nights}"
    else:
        head += f", {fault['state']}"
    said = escaped(fault["ended_message"] if ended else fault["message"], SAID_CHARS)
    return f"{head}: {said}" if said else head


def _packed(lines: Iterable[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Lines under their titles, as the texts of sections; what does not fit is counted."""
    text, under, spent, left = "", "", 0, 0
    for title, line in lines:
        spent += width(line) + (1 if title == under else width(title))
        if spent > LINES_CHARS:
            left += 1
        elif text and title == under and width(text) + width(line) < BLOCK_CHARS:
            text += f"\n{line}"
        else:
            if text:
                yield _plain(text)
            if title != under:
                yield {"type": "mrkdwn", "text": f"*{title}*"}
            text, under = line, title
    if text:
        yield _plain(text)
    if left:
        yield _plain(f"And {left} more: see the report.")
