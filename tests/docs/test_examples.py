"""What the pages show is run: shell sessions on the embedded box, Python sessions as doctests.

A page's ``console`` blocks are one shell session in a folder of its own: a line after ``$`` is a
command (lines after ``>`` belong to it), the lines below are what it prints on stdout. A page's
``pycon`` blocks are one Python session. Figures differ from run to run, so any number stands for
any number; a line ``...`` stands for any lines, and within a line for any words. Other blocks
(``sh``, ``yaml``, ``python``) are not run: they speak of machines that are not here.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The shipped profiles name ports, so one process runs all that launches them.
pytestmark = pytest.mark.xdist_group("shipped-ports")


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


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A newcomer's: a home with nothing in it. What a page leaves running ends with the test."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("EAGLEOPS_", "XDG_"))},
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    yield environment
    if (tmp_path / ".local").exists():
        reset = [sys.executable, "-m", "eagleops", "reset-gpus", "--host", "sim", "--json"]
        subprocess.run(reset, check=True, cwd=tmp_path, env=environment, capture_output=True)


def pages(language: str) -> list[pytest.param]:
    """The pages that have such blocks."""
    return [
        pytest.param(page, id=str(page.relative_to(CHECKOUT)))
        for page in PAGES
        if blocks(page.read_text(encoding="utf-8"), language)
    ]


@pytest.mark.parametrize("page", pages("console"))
def test_a_shell_session_prints_what_the_page_shows(page, environment, tmp_path) -> None:
    """Each command of a page's console blocks runs, and prints what stands below it."""
    folder = tmp_path / "work"
    folder.mkdir()
    for line, block in blocks(page.read_text(encoding="utf-8"), "console"):
        for command in commands(line, block):
            ran = subprocess.run(
                ["bash", "-c", command.text],
                check=False,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            place = f"{page.name}:{command.line}: $ {command.text}"
            printed = f"{place}\nexit status {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
            assert ran.returncode == 0, printed
            assert matches(ran.stdout, command.output), printed


class AnyFigure(doctest.OutputChecker):
    """A doctest's comparison in which a number stands for any number."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether what was printed is what was wanted, figures apart."""
        return super().check_output(want, got, optionflags) or matches(got, want)


@pytest.mark.parametrize("page", pages("pycon"))
def test_a_python_session_prints_what_the_page_shows(page, environment, tmp_path) -> None:
    """A page's pycon blocks are one session in a fresh interpreter, and print what they show."""
    session = "\n".join(block for _, block in blocks(page.read_text(encoding="utf-8"), "pycon"))
    (tmp_path / "session.txt").write_text(session, encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, __file__, tmp_path / "session.txt"],
        check=False,
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_figures_are_alike_and_words_are_not() -> None:
    """The comparison forgives a figure and a table's rules, but not a word."""
    page = "│ 0 │ 1,024 MiB │\n...\nready after 3.2 s (PID 4711)\n"

    assert matches("0   21,959 MiB\nmore\nlines\nready after 12 s (PID 9)\n", page)
    assert matches("0   21,959 MiB\nready after 12 s (PID 9)\n", page)
    assert not matches("0   21,959 MiB\nnot ready after 12 s (PID 9)\n", page)
    assert not matches("0   21,959 GiB\nready after 12 s (PID 9)\n", page)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text(encoding="utf-8")
    example = doctest.DocTestParser().get_doctest(text, {}, "session", sys.argv[1], 0)
    runner = doctest.DocTestRunner(checker=AnyFigure(), optionflags=doctest.ELLIPSIS)
    sys.exit(runner.run(example).failed)
