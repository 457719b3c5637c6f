r"""The words and redirections of one simple command, as a shell takes them apart.

The grammar tells where commands are; where words end it sometimes does not (it makes two of
``a\<newline>b``, and takes words behind a redirection for more of it), so that is done here.
"""

from __future__ import annotations

import re

import attrs

from eagleops.shell.quoting import behind_expansion, closing

_STOPS = "\n;&|()"
_REDIRECTION = re.compile(r"(?P<fd>\d*|\{\w+\})(?P<op>&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||>|<)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


@attrs.frozen
class Lexed:
    """What stands in a simple command.

    Attributes:
        assignments: The words before the first that is none.
        words: The others, as they are written, lines joined.
        redirections: Descriptor, operator and target of each.
        unreadable: What no simple command has; empty for nothing.
    """

    assignments: tuple[str, ...]
    words: tuple[str, ...]
    redirections: tuple[tuple[str, str, str], ...]
    unreadable: str = ""


def lexed(text: str, start: int) -> Lexed:
    """Takes the command apart that begins at ``start`` in ``text``."""
    lexer = _Lexer(text, start)
    lexer.run()
    leading = 0
    while leading < len(lexer.words) and _ASSIGNMENT.match(lexer.words[leading]):
        leading += 1
    words = lexer.words
    return Lexed(
        tuple(words[:leading]), tuple(words[leading:]), tuple(lexer.redirections), lexer.unreadable
    )


@attrs.define
class _Lexer:
    text: str
    n: int
    words: list[str] = attrs.field(factory=list)
    redirections: list[tuple[str, str, str]] = attrs.field(factory=list)
    unreadable: str = ""

    def run(self) -> None:
        while True:
            self.blanks()
            if self.n >= len(self.text) or self.text[self.n] == "#":
                return
            found = _REDIRECTION.match(self.text, self.n)
            if found and not self.text.startswith(("<(", ">("), self.n):
                self.n = found.end()
                self.blanks()
                self.redirections.append((found["fd"], found["op"], self.word()))
            elif self.text[self.n] in _STOPS:
                if self.text[self.n] == "(":
                    self.unreadable = self.text[self.n : self.n + 40]
                return
            elif self.text[self.n] in "<>":
                self.unreadable = self.text[self.n : self.n + 40]
                return
            else:
                self.words.append(self.word())

    def blanks(self) -> None:
        while self.n < len(self.text):
            if self.text[self.n] in " \t":
                self.n += 1
            elif self.text.startswith("\\\n", self.n):
                self.n += 2
            else:
                return

    def word(self) -> str:
        pieces: list[str] = []
        while self.n < len(self.text) and self.text[self.n] not in f" \t<>{_STOPS}":
            end = self.piece()
            pieces.append(self.text[self.n : end])
            self.n = end
        return "".join("" if piece == "\\\n" else piece for piece in pieces)

    def piece(self) -> int:
        """The end of the quote, the expansion or the character that begins here."""
        character, rest = self.text[self.n], self.text[self.n : self.n + 2]
        if character == "\\" or rest == "$$":
            return min(self.n + 2, len(self.text))
        if rest == "$'":
            return closing(self.text, self.n + 1, ansi=True) + 1
        if character in "'\"":
            return closing(self.text, self.n) + 1
        if rest in {"$(", "${"}:
            return behind_expansion(self.text, self.n)
        if character == "`":
            end = self.text.find("`", self.n + 1)
            return end + 1 if end >= 0 else len(self.text)
        return self.n + 1
