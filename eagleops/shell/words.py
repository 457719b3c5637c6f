"""A word of a shell as the shell would hand it on: quotes, escapes, and variables that are known.

What only running would tell (a command's output, files that match, a variable from elsewhere)
is left as it is written, and told as a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from eagleops.shell.quoting import behind_expansion

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_PARAMETER = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?:(?P<op>:?[-=])(?P<rest>[^{}'\"`$\\]*))?\}")
_BRACES = re.compile(r"\{[^{}\s]*(,|\.\.)[^{}\s]*\}")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b",
         "E": "\x1b", "\\": "\\", "'": "'", '"': '"', "?": "?"}  # fmt: skip
_ANSI_CODE = re.compile(r"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})")
_LAST_ASCII = 0x7F


@attrs.frozen
class Doubt:
    """What the reader cannot know of a word.

    Attributes:
        kind: ``substitution``, ``unset``, ``default``, ``glob``, ``braces`` or ``special``.
        text: The part of the word.
    """

    kind: str
    text: str


@attrs.frozen
class Expansion:
    """What becomes of one word.

    Attributes:
        fields: The words that the program gets: mostly one; none for an empty variable.
        doubts: Why that is not certain; empty where the reader vouches for it.
    """

    fields: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()

    @property
    def text(self) -> str:
        """The fields in one, as an assignment has them."""
        return " ".join(self.fields)


def expand(
    raw: str, variables: Mapping[str, str] | None = None, *, home: str = "", split: bool = True
) -> Expansion:
    """What a shell makes of the source of one word.

    Args:
        raw: As it is written.
        variables: Those that are known.
        home: What ``~`` stands for; empty where that is not known.
        split: False for the value of an assignment, which stays one.
    """
    reader = _Reader(raw, variables or {}, home, split=split)
    reader.read()
    return Expansion(tuple(reader.fields), tuple(dict.fromkeys(reader.doubts)))


@attrs.define
class _Reader:
    raw: str
    variables: Mapping[str, str]
    home: str
    split: bool = attrs.field(kw_only=True)
    fields: list[str] = attrs.field(factory=list)
    doubts: list[Doubt] = attrs.field(factory=list)
    _now: list[str] | None = None
    _n: int = 0

    def read(self) -> None:
        bare = _unquoted(self.raw)
        if braces := _BRACES.search(bare):
            self.doubts.append(Doubt("braces", braces[0]))
        assignment = _ASSIGNMENT.match(self.raw)
        tilde_at = {0} | ({assignment.end()} if assignment else set())
        in_value = bool(assignment) or not self.split
        while self._n < len(self.raw):
            if self.raw[self._n] == "~" and self._n in tilde_at:
                self._tilde(in_value=in_value)
            else:
                if self.raw[self._n] == ":" and in_value:
                    tilde_at.add(self._n + 1)
                self._step()
        self._end_field()

    def _step(self) -> None:
        character = self.raw[self._n]
        if character == "\\":
            following = self.raw[self._n + 1 : self._n + 2]
            if following != "\n":
                self._add(following or "\\")
            self._n += 2
        elif character == "'":
            end = self.raw.index("'", self._n + 1)
            self._add(self.raw[self._n + 1 : end])
            self._n = end + 1
        elif character == '"':
            self._n += 1
            self._double_quoted()
        elif character == "$":
            self._dollar(quoted=False)
        elif character == "`":
            self._substitution("`")
        else:
            if character in "*?[":
                self.doubts.append(Doubt("glob", self.raw))
            self._add(character)
            self._n += 1

    def _double_quoted(self) -> None:
        self._add("")
        while self.raw[self._n] != '"':
            character = self.raw[self._n]
            if character == "\\":
                following = self.raw[self._n + 1]
                kept = following if following in '$`"\\' else f"\\{following}"
                self._add("" if following == "\n" else kept)
                self._n += 2
            elif character == "$":
                self._dollar(quoted=True)
            elif character == "`":
                self._substitution("`")
            else:
                self._add(character)
                self._n += 1
        self._n += 1

    def _dollar(self, *, quoted: bool) -> None:
        rest = self.raw[self._n :]
        if rest.startswith("$'") and not quoted:
            self._ansi()
        elif rest.startswith('$"') and not quoted:
            self._n += 1
        elif rest.startswith("$("):
            self._substitution("$(")
        elif found := _PARAMETER.match(rest):
            self._parameter(found, quoted=quoted)
        elif rest.startswith("${"):
            end = behind_expansion(self.raw, self._n, quoted=quoted)
            self._left(Doubt("special", self.raw[self._n : end]))
        elif found := NAME.match(rest, 1):
            self._variable(found[0], f"${found[0]}", quoted=quoted)
        elif re.match(r"\$[0-9@*#?$!-]", rest):
            self._left(Doubt("special", rest[:2]))
        else:
            if not quoted:  # bash does not split a word that ends in one
                self.doubts.append(Doubt("special", "$"))
            self._add("$")
            self._n += 1

    def _parameter(self, found: re.Match[str], *, quoted: bool) -> None:
        name, operator = found["name"], found["op"] or ""
        value = self.variables.get(name)
        if operator and (value is None or (operator[0] == ":" and not value)):
            self.doubts.append(Doubt("default", found[0]))
            self._insert(found["rest"], quoted=quoted)
            self._n += len(found[0])
        else:
            self._variable(name, found[0], quoted=quoted)

    def _variable(self, name: str, source: str, *, quoted: bool) -> None:
        if name not in self.variables:
            self._left(Doubt("unset", source))
            return
        self._insert(self.variables[name], quoted=quoted)
        self._n += len(source)

    def _insert(self, value: str, *, quoted: bool) -> None:
        if quoted or not self.split:
            self._add(value)
            return
        if re.search(r"[*?\[]", value):
            self.doubts.append(Doubt("glob", value))
        pieces = re.split(r"[ \t\n]+", value)
        for n, piece in enumerate(pieces):
            if n:
                self._end_field()
            if piece:
                self._add(piece)

    def _left(self, doubt: Doubt) -> None:
        self.doubts.append(doubt)
        self._add(doubt.text)
        self._n += len(doubt.text)

    def _substitution(self, opening: str) -> None:
        if opening == "`":
            end = self.raw.find("`", self._n + 1) + 1 or len(self.raw)
        else:
            end = behind_expansion(self.raw, self._n)
        self._left(Doubt("substitution", self.raw[self._n : end]))

    def _ansi(self) -> None:
        self._n += 2
        self._add("")
        while self.raw[self._n] != "'":
            if self.raw[self._n] != "\\":
                self._add(self.raw[self._n])
                self._n += 1
                continue
            self._n += 1
            self._ansi_escape()
        self._n += 1

    def _ansi_escape(self) -> None:
        rest = self.raw[self._n :]
        code = _ANSI_CODE.match(rest)
        if rest[0] in _ANSI:
            self._add(_ANSI[rest[0]])
            self._n += 1
        elif code:
            digits = next(group for group in code.groups() if group)
            number = int(digits, 8 if code[4] else 16)
            if not 0 < number <= _LAST_ASCII:
                self.doubts.append(Doubt("special", f"\\{code[0]}"))
            self._add(chr(number % 0x110000) if number else "")
            self._n += len(code[0])
        else:
            if rest[0] in "cxuU":
                self.doubts.append(Doubt("special", f"\\{rest[0]}"))
            self._add(f"\\{rest[0]}")
            self._n += 1

    def _tilde(self, *, in_value: bool) -> None:
        found = re.match(
            r"~[^/:\s'\"$\\`]*" if in_value else r"~[^/\s'\"$\\`]*", self.raw[self._n :]
        )
        user = found[0] if found else "~"
        following = self.raw[self._n + len(user) : self._n + len(user) + 1]
        if following in "'\"$\\`" and following:
            self._add(user)  # quotes in it: no tilde to a shell
            self._n += len(user)
        elif user == "~" and self.home:
            self._add(self.home)
            self._n += 1
        else:
            self._left(Doubt("home", user))

    def _add(self, text: str) -> None:
        if self._now is None:
            self._now = []
        self._now.append(text)

    def _end_field(self) -> None:
        if self._now is not None:
            self.fields.append("".join(self._now))
        self._now = None


def _unquoted(raw: str) -> str:
    """``raw`` with a mark for whatever is quoted, and for each parameter."""
    quoted = r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\{[^}]*\}"
    return re.sub(quoted, "\0", raw, flags=re.DOTALL)
