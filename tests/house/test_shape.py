"""Modules are small, what is public is documented, and tests read as sentences."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 300
# What has a reason to be longer.
LONGER = {
    "eagleops.remote.supervisor": "one file by nature: it is written to the target and run alone"
}
FUNCTION_LINES = 55

Function = ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.AST) -> bool:
    """Whether a definition's name is public."""
    return not getattr(node, "name", "_").startswith("_")


def is_stub(node: Function) -> bool:
    """An overload or a Protocol's member: its body is ``...``, its class tells what it is."""
    return ast.unparse(node.body[-1]) == "..."


def public_definitions(tree: ast.Module) -> Iterator[ast.ClassDef | Function]:
    """Public classes and functions of a module, and public methods of public classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and public(node):
            yield node
            yield from (n for n in node.body if isinstance(n, Function) and public(n))
        elif isinstance(node, Function) and public(node):
            yield node


def test_what_is_public_has_a_docstring(modules) -> None:
    """Each public module, class, function and method says what it is."""
    bare = [m.name for m in modules if ast.get_docstring(m.tree) is None and m.text.strip()]
    bare += [
        f"{module.name}:{node.lineno} {node.name}"
        for module in modules
        for node in public_definitions(module.tree)
        if ast.get_docstring(node) is None and not (isinstance(node, Function) and is_stub(node))
    ]

    assert bare == []


def test_a_module_is_one_concept(modules) -> None:
    """No module has more than 300 lines: a longer one is two nouns."""
    long = {
        module.name: lines
        for module in modules
        if (lines := len(module.text.splitlines())) > MODULE_LINES and module.name not in LONGER
    }

    assert long == {}


def test_a_function_fits_on_a_screen(modules) -> None:
    """No function's body has more than 55 lines, docstring included; a command's flags are more."""
    long = {
        f"{module.name}:{node.lineno} {node.name}": length
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, Function)
        and (length := (node.end_lineno or 0) - node.body[0].lineno + 1) > FUNCTION_LINES
    }

    assert long == {}


def test_every_test_says_in_a_sentence_what_it_proves(checkout: Path) -> None:
    """A test without a docstring leaves its reader to guess what broke."""
    silent = [
        f"{path.relative_to(checkout)}:{node.lineno} {node.name}"
        for path in sorted((checkout / "tests").rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, Function)
        and node.name.startswith("test_")
        and ast.get_docstring(node) is None
    ]

    assert silent == []
