"""Where in the tree of a document a problem stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.inventory.document import Node, Scalar, Table, child_key
from eagleops.inventory.problems import Problem, nearest

# It becomes a folder, part of a log's name and a word of commands.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


def misnamed(name: str, node: Node) -> Iterator[Problem]:
    """The problem of an entry whose name cannot be one."""
    if not _NAME.match(name):
        yield Problem(
            node.line,
            node.key,
            f"{name!r} cannot be a name",
            "Letters, digits, dots, dashes and underscores, 64 at most; a letter or a digit first.",
        )


def entries(tree: Node, section: str) -> Mapping[str, Node]:
    """The entries of a section; empty where there is none."""
    node = tree.get(section) if isinstance(tree, Table) else None
    return node if isinstance(node, Table) else {}


def written(node: Node) -> Mapping[str, Node]:
    """The keys of an entry that say something: null does not."""
    if not isinstance(node, Table):
        return {}
    return {
        name: value
        for name, value in node.items()
        if not (isinstance(value, Scalar) and value.kind == "null")
    }


def at(tree: Table, section: str, name: str) -> Node:
    """The entry ``name`` of a section."""
    return entries(tree, section).get(name) or Scalar(child_key(section, name), 0, name)


def within(node: Node, name: str) -> Node:
    """The key ``name`` of an entry; the entry itself where it has none."""
    return (node.get(name) if isinstance(node, Table) else None) or node


def no_such(node: Node, what: str, name: str, known: Any) -> Problem:
    """A name that names nothing, with the nearest one that does."""
    return Problem(
        node.line, node.key, f"there is no {what} {name}", nearest(name, known, "There are")
    )
