"""eagleops starts as quickly as what it stands on allows."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone

ROUNDS = 7


def seconds(argv: Sequence[str | Path], cwd: Path) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    subprocess.run(argv, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


@pytest.fixture(scope="module")
def medians(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The median time of each command, taken in turns, so that a busy moment meets all alike."""
    folder = tmp_path_factory.mktemp("start")
    checkout = Path(__file__).resolve().parents[2]
    commands = {
        "import fabric": ([sys.executable, "-c", "import fabric"], folder),
        "import eagleops": ([sys.executable, "-c", "import eagleops"], folder),
        "invoke --list": ([sys.executable, "-m", "invoke", "--list"], checkout),
        "eagleops --list": ([sys.executable, "-m", "eagleops", "--list"], folder),
    }
    for argv, cwd in commands.values():
        seconds(argv, cwd)  # Once for the byte code and the page cache.
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, (argv, cwd) in commands.items():
            taken[name].append(seconds(argv, cwd))
    figures = {name: statistics.median(times) for name, times in taken.items()}
    print({name: f"{1000 * figure:.0f} ms" for name, figure in figures.items()})
    return figures


@pytest.mark.parametrize("command", ["invoke --list", "eagleops --list"])
def test_the_list_of_tasks_comes_quickly(medians, command: str) -> None:
    """Listing the tasks takes less than three times what importing Fabric takes."""
    assert medians[command] < 3 * medians["import fabric"]


def test_importing_eagleops_costs_little(medians) -> None:
    """Importing eagleops takes less than half of what importing Fabric takes."""
    assert medians["import eagleops"] < medians["import fabric"] / 2
