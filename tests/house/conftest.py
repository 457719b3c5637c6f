"""What the house's own rules are checked on: the installed package, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

import eagleops

CHECKOUT = Path(__file__).resolve().parents[2]


@attrs.frozen
class Module:
    """One source file of the package."""

    name: str
    path: Path
    text: str
    tree: ast.Module = attrs.field(repr=False, eq=False)

    def imports(self) -> Iterator[tuple[str, int]]:
        """Every imported module and its line, wherever in the file it is imported."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module, node.lineno
                # `from eagleops import sim` names the module by its last word.
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _module(root: Path, path: Path) -> Module:
    parts = path.relative_to(root.parent).with_suffix("").parts
    name = ".".join(parts).removesuffix(".__init__")
    text = path.read_text(encoding="utf-8")
    return Module(name, path, text, ast.parse(text, str(path)))


@pytest.fixture(scope="session")
def modules() -> tuple[Module, ...]:
    """Every module of the installed package."""
    root = Path(eagleops.__file__).parent
    return tuple(_module(root, path) for path in sorted(root.rglob("*.py")))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The repository's folder: for what is no part of the package (README, docs, tests)."""
    return CHECKOUT
