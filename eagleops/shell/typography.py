"""Characters that a word processor, a chat or a terminal put into a pasted command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eagleops.shell.slip import Slip, position

_QUOTES = {"\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"'}
_DASHES = {"\u2013": "--", "\u2014": "--", "\u2212": "-", "\u2010": "-", "\u2011": "-"}
_BLANKS = dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " ")
_NOTHING = dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", "")
# "$ ", "# " after a host, "user@box:~$ ": what stands before a typed command.
_PROMPT = re.compile(
    r"(?m)^(?:\(\S+\)\s+)?(?:\[?[\w.-]+@[\w.-]+[:\s][^\n$#]{0,80}\]?[$#]|[$>])[ \t]+"
)


def cleaned(text: str) -> tuple[str, tuple[Slip, ...]]:
    """``text`` with the characters that were meant, and what was wrong."""
    slips: list[Slip] = []
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _without(text, _PROMPT, slips)
    slips += _told(text, _QUOTES, "smart-quotes", "no shell takes {} for a quote")
    slips += _told(text, _DASHES, "smart-dash", "{} is no dash of a flag")
    slips += _told(text, _BLANKS, "odd-blank", "{} is no blank to a shell: it is part of the word")
    slips += _told(text, _NOTHING, "odd-blank", "{} cannot be seen, and is part of the word")
    table = str.maketrans({**_QUOTES, **_BLANKS, **_NOTHING})
    for dash, meant in _DASHES.items():
        # Chats make one dash of two: where one stands already, one more was meant.
        text = re.sub(f"(?<![\\w-]){dash}(?=\\w)", meant, text).replace(dash, "-")
    return text.translate(table).strip("\n") + "\n", tuple(slips)


def _without(text: str, prompt: re.Pattern[str], slips: list[Slip]) -> str:
    found = prompt.search(text)
    # A prompt that stands in the middle of a paste is a line of a transcript, or of a script.
    if found is None or text[: found.start()].strip():
        return text
    message = f"{found[0].strip()!r} is a prompt, not part of the command"
    slips.append(Slip(1, 1, "prompt", message, severity="note"))
    return prompt.sub("", text)


def _told(text: str, table: dict[str, str], kind: str, message: str) -> Iterator[Slip]:
    for offset, character in enumerate(text):
        if character in table:
            line, column = position(text, offset)
            told = message.format(f"U+{ord(character):04X}")
            fix = f"Read as {table[character]!r}." if table[character] else "Left out."
            yield Slip(line, column, kind, told, fix)
            return  # one of a kind is enough: they come in swarms
