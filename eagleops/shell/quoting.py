"""Which characters of a script stand in quotes, and the backslashes that lost their line's end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eagleops.shell.slip import Slip, Unreadable, position

_HEREDOC = re.compile(r"<<(?P<dash>-?)\s*(?P<quote>['\"\\]?)(?P<word>[\w.]+)['\"]?")


def plain(text: str) -> Iterator[tuple[int, str]]:
    """Offset and character of what stands in no quotes, no comment and no here-document.

    A backslash is given with the character that it quotes.

    Raises:
        Unreadable: if a quote never closes.
    """
    n = 0
    pending: list[tuple[str, bool]] = []
    while n < len(text):
        character = text[n]
        if character == "\\" or text.startswith("$$", n):
            yield n, text[n : n + 2]
            n += 2
        elif text.startswith("$'", n):
            n = closing(text, n + 1, ansi=True) + 1
        elif character in "'\"":
            n = closing(text, n) + 1
        elif character == "#" and (n == 0 or text[n - 1] in " \t\n;&|("):
            end = text.find("\n", n)
            n = len(text) if end < 0 else end
        elif (found := _HEREDOC.match(text, n)) and not text.startswith("<<<", n):
            pending.append((found["word"], bool(found["dash"])))
            n = found.end()
        elif character == "\n" and pending:
            yield n, character
            n = _after_documents(text, n + 1, pending)
            pending = []
        else:
            yield n, character
            n += 1


def closing(text: str, start: int, *, ansi: bool = False) -> int:
    """The offset of the quote that closes the one at ``start``.

    What stands in an expansion between double quotes has quotes of its own.

    Args:
        text: All of it.
        start: Of the opening quote.
        ansi: Whether it is one of ``$'...'``, in which backslashes count.

    Raises:
        Unreadable: if there is none.
    """
    quote = text[start]
    escapes = ansi or quote == '"'
    n = start + 1
    while n < len(text):
        if text[n] == "\\" and escapes:
            n += 2
            continue
        if quote == '"' and text.startswith(("$(", "${"), n):
            n = behind_expansion(text, n, quoted=True)
            continue
        if quote == '"' and text[n] == "`":
            n = text.find("`", n + 1) + 1 or len(text)
            continue
        if text[n] == quote:
            return n
        n += 1
    line, column = position(text, start)
    name = "single quote" if quote == "'" else "double quote"
    message = f"the {name} here never closes: a shell would wait for the rest"
    raise Unreadable(Slip(line, column, "unclosed-quote", message, "Close it."))


def behind_expansion(text: str, start: int, *, quoted: bool = False) -> int:
    """The offset behind the ``$(...)`` or ``${...}`` at ``start``; the text's end if it is open.

    Args:
        text: All of it.
        start: Of its ``$``.
        quoted: Whether it stands between double quotes: in ``${...}`` a single one is none then.

    Raises:
        Unreadable: if a quote in it never closes.
    """
    opening = text[start + 1]
    close = {"(": ")", "{": "}"}[opening]
    quotes = '"' if quoted and opening == "{" else "'\""
    n, depth = start + 2, 1
    while n < len(text) and depth:
        if text[n] == "\\":
            n += 2
        elif text[n] in quotes:
            n = closing(text, n) + 1
        else:
            depth += (text[n] == opening) - (text[n] == close)
            n += 1
    return min(n, len(text))


def _after_documents(text: str, start: int, pending: list[tuple[str, bool]]) -> int:
    n = start
    for word, dashed in pending:
        while True:
            end = text.find("\n", n)
            line = text[n : len(text) if end < 0 else end]
            n = len(text) if end < 0 else end + 1
            if (line.lstrip("\t") if dashed else line) == word:
                break
            if n >= len(text):
                at, column = position(text, start)
                message = f"the here-document never ends: no line is {word!r} alone"
                raise Unreadable(Slip(at, column, "unclosed-document", message, f"Add {word}."))
    return n


def mended(text: str) -> tuple[str, tuple[Slip, ...]]:
    """``text`` with a blank for each backslash that lost its line's end.

    Raises:
        Unreadable: if a quote never closes.
    """
    slips: list[Slip] = []
    pieces = list(text)
    before = (-1, "")
    for offset, token in plain(text):
        dollar = before == (offset - 1, "$")
        before = (offset, token)
        if token[0] != "\\" or len(token) < 2 or token[1] not in " \t":  # noqa: PLR2004 - a backslash and a character
            continue
        if offset and text[offset - 1] not in " \t\n":
            # Meant: a blank in the middle of a word. The grammar passes over it where it is
            # written so, and reads it where it stands in quotes.
            pieces[offset : offset + 2] = [f"'{token[1]}'", ""]
            if dollar:
                pieces[offset - 1] = "'$'"  # or $' would begin another kind of quotation
            continue
        slips.append(_stray(text, offset))
        pieces[offset] = "\\" if _ends_line(text, offset) else " "
        if _ends_line(text, offset):
            end = text.find("\n", offset)
            pieces[offset + 1 : end] = [""] * (end - offset - 1)
    return "".join(pieces), tuple(slips)


def _ends_line(text: str, offset: int) -> bool:
    rest = text[offset + 1 :].lstrip(" \t")
    return rest.startswith("\n") and rest != "\n"


def _stray(text: str, offset: int) -> Slip:
    line, column = position(text, offset)
    word = re.match(r"[ \t]*(\S*)", text[offset + 1 :])
    following = word[1] if word else ""
    if _ends_line(text, offset):
        return Slip(
            line,
            column,
            "broken-continuation",
            "a blank follows the backslash: it quotes that blank, and the command ends there",
            "Read as a continuation; delete what stands behind the backslash.",
        )
    becomes = f"the word after it becomes {' ' + following!r}"
    if re.match(r"[A-Za-z_]\w*=", following):
        becomes += ", a command to run and no variable any more"
    message = f"a shell reads backslash-blank as a quoted blank: {becomes}"
    fix = "Read as a blank; there was a line's end once. Delete the backslash."
    return Slip(line, column, "stray-backslash", message, fix)
