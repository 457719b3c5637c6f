"""YAML as a tree in which every value knows its line, its key, and how it was written.

PyYAML reads YAML 1.1: unquoted ``on`` is true, ``010`` is eight, ``1e6`` a text. A tree of
nodes keeps the text as written and leaves it to the reader of each field what it may be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

import attrs
import yaml

from eagleops.inventory.problems import Problem, Wrong
from eagleops.remote import redact

Kind = Literal["text", "number", "boolean", "null", "blank"]
_YAML = "tag:yaml.org,2002:"
_KINDS: Mapping[str, Kind] = {
    f"{_YAML}str": "text",
    f"{_YAML}int": "number",
    f"{_YAML}float": "number",
    f"{_YAML}bool": "boolean",
    f"{_YAML}null": "null",
    f"{_YAML}timestamp": "text",
    f"{_YAML}value": "text",
    f"{_YAML}merge": "text",
}
_MERGE = f"{_YAML}merge"
_TAGS = {*_KINDS, f"{_YAML}map", f"{_YAML}seq"}
# Aliases of aliases make a short file a huge tree; no inventory comes near this.
_MOST_NODES = 100_000
# So much of a wrong value is enough to find it by.
_MOST_TOLD = 60
# Below these a key is a name that a profile gives: it may name a secret.
_GIVEN = re.compile(r"\.(?:args|env|values)\.(.+)\Z")


@attrs.frozen
class Scalar:
    """One value, as it was written.

    Attributes:
        key: Dotted path, for example ``hosts.pve.python``.
        line: 1-based, of its key where it has one.
        text: Without quotes; escapes are read.
        kind: ``blank`` where nothing was written, ``null`` where null was.
        quoted: Whether it stood in quotes, and so is a text whatever it looks like.
    """

    key: str
    line: int
    text: str
    kind: Kind = "text"
    quoted: bool = False

    @property
    def told(self) -> str:
        """As messages name it: without what is secret."""
        if self.kind == "blank":
            return "nothing"
        if self.kind == "null":
            return "null"
        text = redact.REDACTED if self.is_secret else redact.text(self.text)
        shown = text if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]}..."
        return f"the text {shown!r}" if self.kind == "text" else f"the {self.kind} {shown}"

    @property
    def is_secret(self) -> bool:
        """Whether a profile gives it a secret's name."""
        given = _GIVEN.search(self.key)
        names = given[1].split(".") if given else ()
        return any(redact.is_secret(name, self.text) for name in names)


@attrs.frozen
class Items:
    """A list."""

    key: str
    line: int
    items: tuple[Node, ...] = ()
    told: str = attrs.field(default="a list", init=False)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)


@attrs.frozen
class Table(Mapping[str, "Node"]):
    """A mapping, in the order of the file."""

    key: str
    line: int
    entries: Mapping[str, Node] = attrs.field(factory=dict)
    told: str = attrs.field(default="a mapping", init=False)

    def __getitem__(self, name: str) -> Node:
        return self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


Node: TypeAlias = "Scalar | Items | Table"


def read(text: str) -> Table:
    """The tree of a document whose top is a mapping.

    Raises:
        Wrong: if it is no YAML, has a key twice, or is not a mapping.
    """
    try:
        top = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise Wrong(_syntax(error)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character U+{ord(text[error.position]):04X} may not stand in YAML"
        raise Wrong(Problem(line, "", problem)) from None
    except RecursionError:
        raise Wrong(Problem(0, "", "it is nested too deeply to be an inventory")) from None
    if top is None:
        raise Wrong(Problem(0, "", "the file is empty", "It needs at least one host."))
    builder = _Builder()
    tree = builder.node(top, "", top.start_mark.line + 1)
    problems = list(builder.problems)
    if not isinstance(tree, Table):
        problem = f"expected a mapping with hosts and profiles, got {tree.told}"
        problems.append(Problem(tree.line, "", problem))
        raise Wrong(*problems)
    if problems:
        raise Wrong(*problems)
    return tree


def child_key(key: str, name: str) -> str:
    """The dotted path of ``name`` under ``key``; where ``=`` stands for a colon, of the name alone.

    It is for messages: in ``{HF_TOKEN=...}`` YAML takes the value for a part of the name.
    """
    shown = redact.text(name)
    return f"{key}.{shown}" if key else shown


@attrs.define
class _Builder:
    problems: list[Problem] = attrs.field(factory=list)
    _count: int = 0
    _open: list[int] = attrs.field(factory=list)

    def node(self, node: yaml.Node, key: str, line: int) -> Node:
        self._count += 1
        if self._count > _MOST_NODES:
            raise Wrong(Problem(line, key, f"it has more than {_MOST_NODES:,} values"))
        if id(node) in self._open:
            raise Wrong(Problem(line, key, "an alias names a value that it stands in"))
        if node.tag not in _TAGS:
            self.problems.append(Problem(line, key, f"the tag {node.tag} means nothing here"))
        self._open.append(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return Table(key, line, self._entries(node, key))
            if isinstance(node, yaml.SequenceNode):
                return self._items(node, key, line)
            return self._scalar(node, key, line)
        finally:
            self._open.pop()

    def _items(self, node: yaml.SequenceNode, key: str, line: int) -> Items:
        return Items(
            key,
            line,
            tuple(
                self.node(item, f"{key}[{n}]", item.start_mark.line + 1)
                for n, item in enumerate(node.value)
            ),
        )

    def _scalar(self, node: yaml.Node, key: str, line: int) -> Scalar:
        kind = _KINDS.get(node.tag, "text")
        quoted = getattr(node, "style", None) is not None
        if kind == "null" and node.value == "":
            kind = "blank"
        return Scalar(key, line, node.value, kind, quoted)

    def _entries(self, node: yaml.MappingNode, key: str) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or not key_node.value:
                self.problems.append(Problem(line, key, "a key must be a name"))
            elif key_node.tag == _MERGE:
                merged.update(self._merged(value, key, line))
            elif key_node.value in entries:
                first = lines[key_node.value]
                self.problems.append(
                    Problem(
                        line,
                        child_key(key, key_node.value),
                        f"the key stands here and in line {first}: YAML would drop one of them",
                        "Keep one.",
                    )
                )
            else:
                name = key_node.value
                lines[name] = line
                entries[name] = self.node(value, child_key(key, name), line)
        return {**{name: n for name, n in merged.items() if name not in entries}, **entries}

    def _merged(self, value: yaml.Node, key: str, line: int) -> dict[str, Node]:
        parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
        found: dict[str, Node] = {}
        for part in parts:
            table = self.node(part, key, line)
            if not isinstance(table, Table):
                problem = f"<< expected a mapping, got {table.told}"
                self.problems.append(Problem(line, key, problem))
            else:
                # Of several, the first one wins: https://yaml.org/type/merge.html
                found = {**table.entries, **found}
        return found


def _syntax(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line = 0 if mark is None else mark.line + 1
    problem = error.problem or "it is no YAML"
    if "'\\t'" in problem:
        return Problem(
            line, "", "a tab stands where YAML takes blanks alone", "Indent with blanks."
        )
    if "expected a single document" in str(error):
        return Problem(line, "", "a second document begins here", "Take the line --- out.")
    context = f" ({error.context})" if error.context else ""
    return Problem(line, "", f"this is no YAML: {problem}{context}", _hint(problem, context))


def _hint(problem: str, context: str) -> str:
    if "mapping values are not allowed" in problem:
        return "A colon and a blank inside a value: put the value in quotes."
    if "cannot start any token" in problem or "while scanning an alias" in context:
        return "Put the value in quotes."
    if "could not find expected ':'" in problem:
        return "The line before may lack its colon."
    return ""
