"""What the pages show is run: shell sessions on the embedded box, Python sessions as doctests.

A page's ``console`` blocks are one shell session in a folder of its own: a line after ``$`` is a
command (lines after ``>`` belong to it), the lines below are what it prints on stdout. A page's
``pycon`` blocks are one Python session, in that folder as the commands left it. Figures differ
from run to run, so any number stands for any number; a line ``...`` stands for any lines, and
within a line for any words. Other blocks (``sh``, ``yaml``, ``python``) are not run: they speak
of machines that are not here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts import examples
from parts.examples import blocks, commands, matches
from parts.shared import shipped_port

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A newcomer's: a home with nothing in it. What a page leaves running ends with the test."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("EAGLEOPS_", "XDG_"))},
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    with shipped_port():
        yield environment
        if (tmp_path / ".local").exists():
            reset = [sys.executable, "-m", "eagleops", "reset-gpus", "--host", "sim", "--json"]
            subprocess.run(reset, check=True, cwd=tmp_path, env=environment, capture_output=True)


SESSIONS = [
    pytest.param(page, id=str(page.relative_to(CHECKOUT)))
    for page in PAGES
    if blocks(page.read_text(encoding="utf-8"), "console")
    or blocks(page.read_text(encoding="utf-8"), "pycon")
]


@pytest.mark.parametrize("page", SESSIONS)
def test_a_page_s_sessions_print_what_it_shows(page, environment, tmp_path) -> None:
    """Each command prints what stands below it; then, in the same folder, the Python session."""
    folder = tmp_path / "work"
    folder.mkdir()
    text = page.read_text(encoding="utf-8")
    for line, block in blocks(text, "console"):
        for command in commands(line, block):
            ran = _ran(["bash", "-c", command.text], folder, environment)
            place = f"{page.name}:{command.line}: $ {command.text}"
            printed = f"{place}\nexit status {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
            assert ran.returncode == 0, printed
            assert matches(ran.stdout, command.output), printed
    session = "\n".join(block for _, block in blocks(text, "pycon"))
    (tmp_path / "session.txt").write_text(session, encoding="utf-8")

    python = _ran(
        [sys.executable, examples.__file__, tmp_path / "session.txt"], folder, environment
    )

    assert python.returncode == 0, python.stdout + python.stderr


def _ran(
    argv: list[str | Path], folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        check=False,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_figures_are_alike_and_words_are_not() -> None:
    """The comparison forgives a figure and a table's rules, but not a word."""
    page = "│ 0 │ 1,024 MiB │\n...\nready after 3.2 s (PID 4711)\n"

    assert matches("0   21,959 MiB\nmore\nlines\nready after 12 s (PID 9)\n", page)
    assert matches("0   21,959 MiB\nready after 12 s (PID 9)\n", page)
    assert not matches("0   21,959 MiB\nnot ready after 12 s (PID 9)\n", page)
    assert not matches("0   21,959 GiB\nready after 12 s (PID 9)\n", page)
