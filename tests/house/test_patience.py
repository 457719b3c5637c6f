"""Tests are patient: on a busy machine any bound on time, but on what hangs, fails by chance."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

# A bound below it is a measurement, and a test that measures is marked alone.
PATIENCE_S = 20
CLOCKS = {"monotonic", "perf_counter"}
TESTS = Path(__file__).resolve().parents[1]


def measures(node: ast.FunctionDef | ast.Module) -> bool:
    """Whether a test, or every test of a module, is marked as measuring time."""
    if isinstance(node, ast.Module):
        return any(ast.unparse(line) == "pytestmark = pytest.mark.alone" for line in node.body)
    return any("mark.alone" in ast.unparse(mark) for mark in node.decorator_list)


def unmeasured(text: str) -> Iterator[ast.FunctionDef]:
    """The tests of a file that do not measure time."""
    tree = ast.parse(text)
    for node in () if measures(tree) else tree.body:
        is_test = isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if is_test and not measures(node):
            yield node


def takes(node: ast.expr, timed: set[str]) -> bool:
    """Whether an expression is a time that something took."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    read = any(isinstance(n, ast.Attribute) and n.attr in CLOCKS for n in ast.walk(node))
    return read or bool(names & timed)


def bounds(test: ast.FunctionDef) -> Iterator[float]:
    """Upper bounds on times that a test takes by a clock, and limits of its waits for a fact."""
    timed: set[str] = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            if takes(node.value, set()):
                timed |= {n.id for n in node.targets if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for took, operator, most in zip(sides, node.ops, node.comparators, strict=False):
                upper = isinstance(operator, ast.Lt | ast.LtE) and isinstance(most, ast.Constant)
                if upper and takes(took, timed):
                    yield float(most.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "until":
            limits = [word.value for word in node.keywords if word.arg == "limit_s"]
            yield from (float(n.value) for n in limits if isinstance(n, ast.Constant))


def hasty(text: str) -> list[str]:
    """The tests of a file that would fail on a busy machine."""
    return [
        test.name for test in unmeasured(text) if any(bound < PATIENCE_S for bound in bounds(test))
    ]


def test_a_test_that_does_not_measure_time_is_patient() -> None:
    """Its bounds are for what hangs; one that holds a figure runs alone."""
    files = sorted(TESTS.glob("*/test_*.py"))
    found = {str(file.relative_to(TESTS)): hasty(file.read_text("utf-8")) for file in files}

    assert {file: names for file, names in found.items() if names} == {}


def test_haste_is_seen() -> None:
    """In a comparison, in a figure that has a name, and in the limit of a wait."""
    text = """
import time
def test_a():
    assert 0.1 < time.monotonic() - began < 2
def test_b():
    took_s = time.perf_counter() - began
    assert took_s <= 2
def test_c():
    until(it, limit_s=5)
def test_patient():
    until(it, limit_s=30)
    assert time.monotonic() - began < 30
@pytest.mark.alone
def test_measured():
    assert time.monotonic() - began < 2
"""

    assert hasty(text) == ["test_a", "test_b", "test_c"]
    assert hasty(f"{text}\npytestmark = pytest.mark.alone") == []
