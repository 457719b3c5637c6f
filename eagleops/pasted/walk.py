"""Goes through a pasted script as a shell would, and runs nothing of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from eagleops.pasted.following import Expanded, Follower
from eagleops.pasted.small_programs import KILLS, SMALL
from eagleops.pasted.surroundings import Report, Surroundings
from eagleops.pasted.telling import tell_doubt
from eagleops.shell import Doubt, SimpleCommand, Unreadable, expand, read
from eagleops.shell.slip import Slip, position

_DEPTH = 12
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def walk(text: str, report: Report, around: Surroundings, depth: int = 0) -> None:
    """Reads ``text`` as a script and adds what it starts to ``report``.

    Raises:
        Unreadable: if it cannot be read.
    """
    if depth > _DEPTH:
        raise Unreadable(Slip(1, 1, "too-deep", "shells within shells, twelve deep"))
    try:
        script = read(text)
    except Unreadable as wrong:
        raise Unreadable(_placed(wrong.slip, text, report.text)) from None
    report.slips += [_placed(slip, text, report.text) for slip in script.slips]
    for command in _joined(script.commands, report):
        _Walker(report, around, depth, text).command(command)


def _placed(slip: Slip, text: str, whole: str) -> Slip:
    """``slip`` with its place in all that was pasted, where ``text`` stands in it as it is."""
    base = whole.find(text)
    if base <= 0:
        return slip
    lines = text.split("\n")
    offset = sum(len(line) + 1 for line in lines[: slip.line - 1]) + slip.column - 1
    line, column = position(whole, base + offset)
    return attrs.evolve(slip, line=line, column=column)


def _joined(commands: tuple[SimpleCommand, ...], report: Report) -> list[SimpleCommand]:
    """Commands, with lines that begin with a flag put where they belong."""
    joined: list[SimpleCommand] = []
    for command in commands:
        first = command.words[0] if command.words else ""
        previous = joined[-1] if joined else None
        if previous and previous.words and re.match(r"--?[A-Za-z]", first) and not command.after:
            report.tell(
                "lost-continuation",
                f"the line that begins with {first} is a command of its own: the line before it "
                "has lost its backslash, or a comment stands between them",
                "Read as one command; end each line of it but the last with a backslash.",
                line=command.line,
            )
            joined[-1] = attrs.evolve(
                previous,
                words=(*previous.words, *command.words),
                redirections=(*previous.redirections, *command.redirections),
                background=command.background,
            )
        else:
            joined.append(command)
    return joined


@attrs.define
class _Walker:
    report: Report
    around: Surroundings
    depth: int
    text: str

    def command(self, command: SimpleCommand) -> None:
        around = self.around
        prefix = dict(self.assignments(command))
        if command.unreadable:
            message = f"the reader cannot tell what this is: {command.unreadable[:60]!r}"
            self.report.tell("syntax", message, line=command.line)
        if command.declares in {"export", "declare", "typeset", "readonly", "local"}:
            self.declared(command, prefix)
        elif not command.words:
            around.variables.update(prefix)
            self.tell_unexported(command, prefix)
        else:
            words, doubts = self.words(command.words)
            self.run(Expanded(command, words, prefix, doubts))

    def assignments(self, command: SimpleCommand) -> Iterator[tuple[str, str]]:
        seen: dict[str, str] = {}
        for name, raw in command.assignments:
            known = {**self.around.known, **seen}
            expansion = expand(raw, known, home=self.around.target.home, split=False)
            tell_doubts(self.report, command, name, expansion.doubts, self.around)
            if name in seen:
                same = seen[name] == expansion.text
                self.report.tell(
                    "variable-twice",
                    f"{name} is set twice in one command"
                    + ("" if same else ": the last one holds"),
                    "Keep one of them.",
                    "warning" if same else "error",
                    command.line,
                )
            seen[name] = expansion.text
        yield from seen.items()

    def words(self, raws: tuple[str, ...]) -> tuple[list[str], list[tuple[str, Doubt]]]:
        words: list[str] = []
        doubts: list[tuple[str, Doubt]] = []
        for raw in raws:
            expansion = expand(raw, self.around.known, home=self.around.target.home)
            words += expansion.fields
            doubts += [(raw, doubt) for doubt in expansion.doubts]
        return words, doubts

    def declared(self, command: SimpleCommand, given: dict[str, str]) -> None:
        around = self.around
        around.variables.update(given)
        bare = [word for word in command.words[1:] if _NAME.match(word)]
        if command.declares == "export" or "-x" in command.words:
            around.exported.update(given, bare)
        if "=" in command.words:
            self.report.tell(
                "export-blanks",
                "blanks around = : a shell exports the name alone, without the value",
                "Write NAME=VALUE in one word.",
                line=command.line,
            )

    def tell_unexported(self, command: SimpleCommand, given: dict[str, str]) -> None:
        for name in given:
            used = re.search(rf"\$\{{?{name}\b", self.report.text)
            exported = re.search(rf"\bexport\s[^\n;]*\b{name}\b", self.report.text)
            if used or exported or name in self.around.exported:
                continue
            self.report.tell(
                "not-exported",
                f"{name} is set for the shell alone: no program that it starts gets it",
                f"Write `export {name}=...`, or put it before the command in one line. It is left "
                "out of the profile, as it was left out before.",
                line=command.line,
            )

    def run(self, expanded: Expanded) -> None:
        command, words, prefix = expanded.command, expanded.words, expanded.prefix
        name = words[0].rpartition("/")[2] if words else ""
        if name in {"cd", "pushd"}:
            self.go(words[1:], command, prefix)
        elif name in {"source", "."}:
            self.sourced(words[1:], command)
        elif name == "unset":
            for one in words[1:]:
                self.around.variables.pop(one, None)
        elif name == "set" and "-a" in words:
            self.around.exported.update(self.around.variables)
        elif name in KILLS or (name == "xargs" and KILLS & set(words)):
            self.report.tell(
                "kills",
                f"`{name}` is not taken over: a launch resets the GPUs first, by rules that spare "
                "what is not stale",
                severity="note",
                line=command.line,
            )
        elif name in SMALL:
            self.small(command, words, prefix)
        elif len(words) > 1 and words[1].startswith("=") and _NAME.match(words[0]):
            self.report.tell(
                "assignment-blank",
                f"a blank before = : a shell runs {words[0]!r} as a command",
                "Write NAME=VALUE in one word.",
                line=command.line,
            )
        elif words:
            follower = Follower(self.report, self.around, self.depth, walk)
            follower.follow(expanded)

    def small(self, command: SimpleCommand, words: list[str], prefix: dict[str, str]) -> None:
        self.report.left_out.append(words[0])
        if prefix:
            self.tell_wasted(command, words[0], prefix)
        for redirection in command.redirections:
            if redirection.operator in {"<<", "<<-"} and words[0] == "cat":
                for other in command.redirections:
                    if other.operator in {">", ">>"}:
                        self.around.documents[other.target] = redirection.body

    def tell_wasted(self, command: SimpleCommand, program: str, prefix: dict[str, str]) -> None:
        self.report.tell(
            "wasted-variable",
            f"{', '.join(prefix)} before `{program}` holds for that command alone: the server does "
            "not get it",
            "Put it before the server's own command.",
            line=command.line,
        )

    def go(self, words: list[str], command: SimpleCommand, prefix: dict[str, str]) -> None:
        if prefix:
            self.tell_wasted(command, "cd", prefix)
        there = next((word for word in words if not word.startswith("-")), "")
        around = self.around
        around.cwd = there if there.startswith(("/", "~")) else f"{around.cwd}/{there}".strip("/")
        if not around.cwd.startswith(("/", "~")) and there and not there.startswith("/"):
            around.cwd = there

    def sourced(self, words: list[str], command: SimpleCommand) -> None:
        file = words[0] if words else ""
        found = re.match(r"(?P<venv>.+)/bin/activate\Z", file)
        if found:
            venv = found["venv"]
            absolute = venv.startswith("/") or not self.around.cwd.startswith("/")
            self.around.venv = venv if absolute else f"{self.around.cwd}/{venv}"
            return
        self.report.tell(
            "sourced",
            f"`source {file}` was not pasted: what it sets is not known",
            "Write the variables that count into the profile, or name the file as its env_file.",
            "warning",
            command.line,
        )


def tell_doubts(
    report: Report,
    command: SimpleCommand,
    name: str,
    doubts: tuple[Doubt, ...],
    around: Surroundings,
) -> None:
    """Tells what is not known of a variable's value."""
    for doubt in doubts:
        tell_doubt(report, command, name, doubt, around)
