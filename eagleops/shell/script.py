"""A script as a shell groups it: its simple commands, in order, and what binds them.

The grammar is tree-sitter's for bash, the one that editors use. It tells where commands,
redirections and here-documents are; what a word means is told by :mod:`eagleops.shell.words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import attrs

from eagleops.shell.lexing import Lexed, lexed
from eagleops.shell.quoting import mended
from eagleops.shell.slip import Slip, Unreadable, position

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_SIMPLE = {
    "command",
    "declaration_command",
    "unset_command",
    "variable_assignment",
    "variable_assignments",
    "test_command",
}
_DECLARE = {"export", "declare", "typeset", "readonly", "local"}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_REDIRECTIONS = {"file_redirect", "heredoc_redirect", "herestring_redirect"}
_BLOCKS = {
    "while_statement": "a loop",
    "for_statement": "a loop",
    "c_style_for_statement": "a loop",
    "if_statement": "a condition",
    "case_statement": "a condition",
    "function_definition": "a function",
}
# Behind a brace the grammar's own scanner looks such a character up far behind its table.
_FAR = re.compile("[\U00010000-\U0010ffff]")
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
    source = _FAR.sub("é", repaired).encode("utf-8", "surrogatepass")
    tree = _parser().parse(source)
    reader = _Reader(repaired, source)
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
    text: str
    source: bytes

    def offset(self, node: Node) -> int:
        """Where a node begins, in characters."""
        return len(self.source[: node.start_byte].decode("utf-8", "surrogatepass"))

    def source_of(self, node: Node) -> str:
        length = len(self.source[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass"))
        return self.text[self.offset(node) :][:length]

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
        if kind in _SIMPLE or (kind == "redirected_statement" and self.is_simple(node)):
            yield self.command(node, inside)
            yield from self.behind_documents(node, inside)
        elif kind == "redirected_statement":
            yield from self.redirected(node, inside)
        elif kind in _BLOCKS:
            yield from self.statements(node, (*inside, _BLOCKS[kind]))
        elif kind == "comment":
            return
        else:
            yield from self.statements(node, inside)

    def is_simple(self, node: Node) -> bool:
        """Whether a redirected statement is a simple command, or a redirection alone."""
        body = node.child_by_field_name("body")
        return body is None or body.type in _SIMPLE

    def redirected(self, node: Node, inside: tuple[str, ...]) -> Iterator[SimpleCommand]:
        """A block with a redirection of its own: it is its last command's as well."""
        body = node.child_by_field_name("body")
        if body is None:
            return
        commands = list(self.statement(body, inside))
        first = next((child for child in node.children if child.type in _REDIRECTIONS), None)
        # In a list or a pipeline it stands with the command that it follows.
        if commands and first is not None and body.type not in {"list", "pipeline"}:
            more = self.redirections(lexed(self.text, self.offset(first)), node)
            last = commands[-1]
            commands[-1] = attrs.evolve(last, redirections=(*last.redirections, *more))
        yield from commands
        yield from self.behind_documents(node, inside)

    def behind_documents(self, node: Node, inside: tuple[str, ...]) -> Iterator[SimpleCommand]:
        """What stands behind ``<<EOF`` in its line, for example ``&& echo done``."""
        for document in node.children:
            bound = ""
            for child in document.children if document.type == "heredoc_redirect" else ():
                if child.type in {"&&", "||", "|"}:
                    bound = child.type
                elif child.type in {*_SIMPLE, "list", "pipeline", "redirected_statement"}:
                    found = list(self.statement(child, inside))
                    if found:
                        found[0] = attrs.evolve(found[0], after=bound)
                    yield from found

    def command(self, node: Node, inside: tuple[str, ...]) -> SimpleCommand:
        parts = lexed(self.text, self.offset(node))
        declares = parts.words[0] if parts.words and parts.words[0] in _DECLARE else ""
        assigned = list(parts.assignments)
        words = list(parts.words)
        if declares:
            assigned += [word for word in words[1:] if _ASSIGNMENT.match(word)]
            words = [word for word in words if not _ASSIGNMENT.match(word)]
        return SimpleCommand(
            line=node.start_point.row + 1,
            assignments=tuple(_split(one) for one in assigned),
            words=tuple(words),
            redirections=self.redirections(parts, node),
            inside=inside,
            declares=declares,
            unreadable=parts.unreadable,
        )

    def redirections(self, parts: Lexed, node: Node) -> tuple[Redirection, ...]:
        bodies = [self.source_of(each) for each in _within(node, "heredoc_body")]
        found = []
        for descriptor, operator, target in parts.redirections:
            literal = any(character in target for character in "'\"\\")
            is_document = operator in {"<<", "<<-"}
            body = bodies.pop(0) if is_document and bodies else ""
            if operator == "<<-":
                body = re.sub(r"(?m)^\t+", "", body)
            found.append(Redirection(operator, descriptor, target, body, literal))
        return tuple(found)


def _split(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name.removesuffix("+"), value


def _within(node: Node, kind: str) -> Iterator[Node]:
    for child in node.children:
        if child.type == kind:
            yield child
        elif child.type in _REDIRECTIONS:
            yield from _within(child, kind)
