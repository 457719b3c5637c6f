"""Pages as sessions: their blocks, their commands, and whether an output is what they show.

``python examples.py FILE`` runs a file of Python prompts as one doctest.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import attrs

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Command:
    """A command of a shell session and what the page says it prints."""

    line: int
    text: str
    output: str


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """A page's blocks of one language, each with the line at which it begins."""
    return [
        (text[: found.start(2)].count("\n") + 1, found[2])
        for found in FENCE.finditer(text)
        if found[1] == language
    ]


def commands(line: int, block: str) -> list[Command]:
    """The commands of a ``console`` block."""
    parsed: list[Command] = []
    for number, text in enumerate(block.splitlines(), start=line):
        if text.startswith("$ "):
            parsed.append(Command(number, text[2:], ""))
        elif text.startswith("> ") and not parsed[-1].output:
            parsed[-1] = attrs.evolve(parsed[-1], text=f"{parsed[-1].text}\n{text[2:]}")
        else:
            parsed[-1] = attrs.evolve(parsed[-1], output=f"{parsed[-1].output}{text}\n")
    return parsed


def plain(line: str) -> str:
    """A line with its figures, rules and blanks made alike."""
    line = re.sub(r"[─━═╭╮╰╯│┃┏┓┗┛┡┩└┘┌┐├┤┬┴┼╴╶╸╺]+", " ", line)
    line = re.sub(r"\b[0-9a-f]{8,}\b|\d[\d.,:TZ-]*", "#", line)
    return " ".join(line.split())


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part.strip()) for part in line.split("..."))


def matches(shown: str, expected: str) -> bool:
    """Whether an output is what a page says, but for figures and what ``...`` stands for."""
    pattern = "".join(
        "(?:.*\n)*" if line.strip() == "..." else f"{_line_pattern(plain(line))}\n"
        for line in expected.splitlines()
        if plain(line)
    )
    text = "".join(f"{plain(line)}\n" for line in shown.splitlines() if plain(line))
    return re.fullmatch(pattern, text) is not None


class AnyFigure(doctest.OutputChecker):
    """A doctest's comparison in which a number stands for any number."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether what was printed is what was wanted, figures apart."""
        return super().check_output(want, got, optionflags) or matches(got, want)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    example = doctest.DocTestParser().get_doctest(text, {}, "session", sys.argv[1], 0)
    runner = doctest.DocTestRunner(checker=AnyFigure(), optionflags=doctest.ELLIPSIS)
    sys.exit(runner.run(example).failed)
