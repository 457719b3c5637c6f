"""A script as a shell groups it: its simple commands, in order, and what binds them.

The grammar is tree-sitter's for bash, the one that editors use. It tells where commands,
redirections and here-documents are; what a word means is told by :mod:`eagleops.shell.words`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import attrs

from eagleops.shell.quoting import mended
from eagleops.shell.slip import Slip, Unreadable, position

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_REDIRECTIONS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_BLOCKS = {
    "while_statement": "a loop",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "if_statement": "a condition",
    "case_statement": "a condition",
    "function_definition": "a function",
}
_SILENT = {"comment", "\n", ";", "heredoc_body"}


@attrs.frozen
class Redirection:
    """Where a stream goes or comes from.

    Attributes:
        operator: ``>``, ``>>``, ``2>&1``'s ``>&``, ``&>``, ``<``, ``<<``, ``<<<``.
        descriptor: As it is written; empty for the operator's own.
        target: The source of the word after it.
        body: Of a here-document.
        literal: Whether that is taken as it stands, no variable in it expanded.
    """

    operator: str
    descriptor: str = ""
    target: str = ""
    body: str = ""
    literal: bool = False


@attrs.frozen(kw_only=True)
class SimpleCommand:
    """One command: what a shell starts a program with.

    Attributes:
        line: 1-based, in the text that was read.
        assignments: Name and source of the value, before the command or alone.
        words: The sources of its words.
        after: What binds it to the one before: ``;``, ``&&``, ``||``, ``|`` or nothing.
        background: Whether ``&`` follows it, or the list that it ends.
        inside: The loops, conditions and functions that it stands in.
        declares: ``export``, ``declare`` and the like, whose assignments these are.
        unreadable: A part that the grammar gave up on; empty for none.
    """

    line: int
    assignments: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    after: str = ""
    background: bool = False
    inside: tuple[str, ...] = ()
    declares: str = ""
    unreadable: str = ""


@attrs.frozen
class Script:
    """What a text is to a shell.

    Attributes:
        commands: Its simple commands, in order.
        slips: What was wrong in the text, and was read as it was meant.
    """

    commands: tuple[SimpleCommand, ...]
    slips: tuple[Slip, ...] = ()


def read(text: str) -> Script:
    """Reads a script.

    Raises:
        Unreadable: if a quote or a here-document never closes, or it is no shell's language.
    """
    repaired, slips = mended(text)
    source = repaired.encode("utf-8", "surrogatepass")
    tree = _parser().parse(source)
    reader = _Reader(source)
    commands = list(reader.statements(tree.root_node, ()))
    if tree.root_node.has_error and not _bearable(commands):
        raise Unreadable(_fault(tree.root_node, repaired, source))
    return Script(tuple(commands), slips)


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _bearable(commands: list[SimpleCommand]) -> bool:
    # The grammar goes on after a fault; a fault inside one command is told with it.
    return any(command.words for command in commands)


def _fault(root: Node, text: str, source: bytes) -> Slip:
    bad = next(_faults(root), root)
    offset = len(source[: bad.start_byte].decode("utf-8", "replace"))
    line, column = position(text, offset)
    seen = source[bad.start_byte : bad.end_byte].decode("utf-8", "replace").strip()[:40]
    message = f"no shell reads on from here: {seen!r}"
    return Slip(line, column, "syntax", message, "A bracket, a quote or a keyword may be missing.")


def _faults(node: Node) -> Iterator[Node]:
    if node.type == "ERROR" or node.is_missing:
        yield node
    for child in node.children:
        yield from _faults(child)


@attrs.define
class _Reader:
    source: bytes

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")

    def statements(self, node: Node, inside: tuple[str, ...]) -> Iterator[SimpleCommand]:
        """The commands in the children of ``node``, each bound to the one before."""
        bound = ""
        before: list[SimpleCommand] = []
        for child in node.children:
            if child.type in {"&&", "||", "|", "|&"}:
                bound = child.type.replace("|&", "|")
            elif child.type == "&":
                before = [attrs.evolve(one, background=True) for one in before]
            elif child.type in _SILENT or not child.is_named:
                continue
            else:
                yield from before
                before = list(self.statement(child, inside))
                if before:
                    before[0] = attrs.evolve(before[0], after=bound or (before[0].after))
                bound = ""
        yield from before

    def statement(self, node: Node, inside: tuple[str, ...]) -> Iterator[SimpleCommand]:
        kind = node.type
        if kind in {"command", "declaration_command", "unset_command"}:
            yield self.command(node, inside)
        elif kind == "variable_assignment":
            yield SimpleCommand(
                line=node.start_point.row + 1,
                assignments=(self.assignment(node),),
                inside=inside,
            )
        elif kind == "redirected_statement":
            yield from self.redirected(node, inside)
        elif kind in _BLOCKS:
            yield from self.statements(node, (*inside, _BLOCKS[kind]))
        elif kind == "comment":
            return
        else:
            yield from self.statements(node, inside)

    def redirected(self, node: Node, inside: tuple[str, ...]) -> Iterator[SimpleCommand]:
        body = node.child_by_field_name("body") or node.children[0]
        redirections = tuple(
            self.redirection(child) for child in node.children if child.type in _REDIRECTIONS
        )
        commands = list(self.statement(body, inside)) if body.type not in _REDIRECTIONS else []
        for n, one in enumerate(commands):
            more = redirections if n == len(commands) - 1 else ()
            commands[n] = attrs.evolve(one, redirections=(*one.redirections, *more))
        yield from commands
        for child in node.children:
            if child.type == "heredoc_redirect":
                yield from self.after_document(child, inside)

    def after_document(self, node: Node, inside: tuple[str, ...]) -> Iterator[SimpleCommand]:
        """What stands behind ``<<EOF`` in its line, for example ``&& echo done``."""
        bound = ""
        for child in node.children:
            if child.type in {"&&", "||", "|"}:
                bound = child.type
            elif child.type in {"command", "list", "pipeline", "redirected_statement"}:
                found = list(self.statement(child, inside))
                if found:
                    found[0] = attrs.evolve(found[0], after=bound)
                yield from found

    def command(self, node: Node, inside: tuple[str, ...]) -> SimpleCommand:
        words: list[str] = []
        assignments: list[tuple[str, str]] = []
        redirections: list[Redirection] = []
        declares = node.children[0].type if node.type != "command" else ""
        unreadable = ""
        end = node.start_byte
        for child in node.children:
            gap = self.source[end : child.start_byte]
            if gap.replace(b"\\\n", b"").strip():
                unreadable = unreadable or gap.decode("utf-8", "replace").strip()
            end = child.end_byte
            if child.type == "ERROR" or child.is_missing:
                unreadable = unreadable or self.text(child) or child.type
            elif child.type == "variable_assignment":
                assignments.append(self.assignment(child))
            elif child.type in _REDIRECTIONS:
                redirections.append(self.redirection(child))
            elif child.type != "comment":
                words.append(self.text(child))
        return SimpleCommand(
            line=node.start_point.row + 1,
            assignments=tuple(assignments),
            words=tuple(words),
            redirections=tuple(redirections),
            inside=inside,
            declares=declares,
            unreadable=unreadable,
        )

    def assignment(self, node: Node) -> tuple[str, str]:
        name, _, value = self.text(node).partition("=")
        return name, value

    def redirection(self, node: Node) -> Redirection:
        descriptor = operator = target = body = ""
        literal = False
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = self.text(child)
            elif child.type == "heredoc_start":
                target = self.text(child)
                literal = any(character in target for character in "'\"\\")
            elif child.type == "heredoc_body":
                body = self.text(child)
            elif child.is_named and child.type != "heredoc_end":
                target = target or self.text(child)
            elif not operator and not child.is_named:
                operator = self.text(child)
        return Redirection(operator, descriptor, target, body, literal)
