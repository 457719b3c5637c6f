"""The documentation's example shows what the page says it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "overwritten_environ.py"


def shown(**env: str) -> list[str]:
    """What the example prints."""
    whole = {**{k: v for k, v in os.environ.items() if k != "SPT_NOENV"}, **env}
    ran = subprocess.run(
        [sys.executable, EXAMPLE], env=whole, capture_output=True, text=True, check=True
    )
    return ran.stdout.splitlines()


def test_the_example_shows_the_blind_instrument() -> None:
    """The variable is in effect, and /proc/PID/environ does not have it."""
    assert shown() == [
        "getenv in the worker finds b'Ring'",
        "/proc/PID/environ has NCCL_ALGO: False",
        "of its bytes are zero: 100%",
    ]


def test_the_example_shows_that_spt_noenv_keeps_it_honest() -> None:
    """With SPT_NOENV=1 the block still has the variable."""
    assert shown(SPT_NOENV="1")[:2] == [
        "getenv in the worker finds b'Ring'",
        "/proc/PID/environ has NCCL_ALGO: True",
    ]


def test_the_example_is_short() -> None:
    """Twenty lines of code are read; two hundred are believed or not."""
    code = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]

    assert len(code) <= 20
