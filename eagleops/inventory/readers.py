"""How one value of hosts.yaml is read: from a node to what a field holds, or a problem."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from eagleops.inventory.document import Items, Node, Scalar, Table
from eagleops.inventory.problems import Problem, Wrong, nearest
from eagleops.profile.values import (
    VARIABLE_NAME,
    passable,
)
from eagleops.remote import redact

T = TypeVar("T")
Reader = Callable[[Node], Any]

_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
# What other tools take for a time, and people write; a key's name has the unit here.
_DURATION = re.compile(r"([1-9][0-9]{0,5}) ?(s|m|min|h|d)\Z")
_UNITS_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def wrong(node: Node, problem: str, way_out: str = "") -> Wrong:
    """A problem with one value."""
    return Wrong(Problem(node.line, node.key, problem, way_out))


def unexpected(node: Node, expected: str, way_out: str = "") -> Wrong:
    """A value of another kind than the field's."""
    return wrong(node, f"expected {expected}, got {node.told}", way_out)


def gathered(readings: Iterable[Callable[[], T]]) -> list[T]:
    """The value of each reading.

    Raises:
        Wrong: with the problems of all of them, if any has one.
    """
    values: list[T] = []
    problems: list[Problem] = []
    for reading in readings:
        try:
            values.append(reading())
        except Wrong as found:  # noqa: PERF203 - each reading fails on its own
            problems += found.problems
    if problems:
        raise Wrong(*problems)
    return values


def text(node: Node) -> str:
    """A text that is not empty."""
    if not isinstance(node, Scalar) or node.kind != "text":
        raise unexpected(node, "a text", _quote_hint(node))
    if not node.text.strip():
        raise unexpected(node, "a text that is not empty")
    return handed_on(node)


def whole_number(lowest: int, highest: int | None = None) -> Callable[[Node], int]:
    """A reader of numbers from ``lowest`` to ``highest``."""
    limits = f"from {lowest} up" if highest is None else f"from {lowest} to {highest}"

    def read(node: Node) -> int:
        if isinstance(node, Scalar) and node.kind == "text" and _WHOLE.match(node.text):
            raise unexpected(node, f"a number {limits}", f"Write {node.text} without the quotes.")
        if not isinstance(node, Scalar) or node.kind != "number" or not _WHOLE.match(node.text):
            raise unexpected(node, f"a number {limits}")
        value = int(node.text)
        if value < lowest or (highest is not None and value > highest):
            raise unexpected(node, f"a number {limits}")
        return value

    return read


def seconds(node: Node) -> float:
    """A number above 0, whole or with a fraction."""
    value = number(node)
    if value is not None and value > 0:
        return value
    raise unexpected(node, "a number of seconds above 0", _seconds_hint(node))


def number(node: Node) -> float | None:
    """A number, whole or with a fraction, as JSON writes it; None if it is none."""
    if isinstance(node, Scalar) and not node.quoted and _JSON_NUMBER.match(node.text):
        value = float(node.text)
        return value if math.isfinite(value) else None
    return None


def yes_or_no(node: Node) -> bool:
    """A boolean, in any of YAML's spellings."""
    if not isinstance(node, Scalar) or node.kind != "boolean":
        raise unexpected(node, "true or false")
    return truth(node.text)


def truth(boolean: str) -> bool:
    """What a boolean of YAML 1.1 says, in any of its spellings."""
    return boolean.lower() in {"true", "yes", "on"}


def one_of(*choices: str) -> Callable[[Node], str]:
    """A reader of one of a few words."""

    def read(node: Node) -> str:
        if isinstance(node, Scalar) and node.text in choices:
            return node.text
        given = node.text if isinstance(node, Scalar) else ""
        raise wrong(
            node,
            f"expected one of {', '.join(choices)}, got {node.told}",
            nearest(given, choices) if given else "",
        )

    return read


def list_of(read: Callable[[Node], T], *, single: bool = False) -> Callable[[Node], tuple[T, ...]]:
    """A reader of lists; ``single`` takes one value alone for a list of one."""

    def read_list(node: Node) -> tuple[T, ...]:
        if isinstance(node, Items):
            return tuple(gathered(partial(read, item) for item in node))
        if single and isinstance(node, Scalar):
            return (read(node),)
        raise unexpected(node, "a list", _list_hint(node))

    return read_list


def handed_on(node: Node) -> str:
    """A text or a number as it was written, for a process to get; it may be empty."""
    if not isinstance(node, Scalar) or node.kind not in {"text", "number"}:
        raise unexpected(node, "a text or a number", _quote_hint(node))
    if not passable(node.text):
        raise wrong(node, "it holds a NUL byte or half a surrogate pair: no process can get it")
    return node.text


def path(node: Node) -> Path:
    """A path on this machine, ``~`` and relative to hosts.yaml allowed."""
    value = Path(text(node))
    try:
        value.expanduser()
    except RuntimeError:
        home = value.parts[0]
        raise wrong(node, f"nobody's home is {home} here", "Write the whole path.") from None
    return value


def program(node: Node) -> str:
    """A program on another machine: a path, or a name on its PATH."""
    value = text(node)
    if value.startswith("~"):
        raise wrong(node, f"no shell reads {node.told}, so ~ would stay ~", "Write the whole path.")
    return value


def absolute_path(node: Node) -> str:
    """A path on another machine."""
    value = text(node)
    if not value.startswith("/"):
        raise unexpected(node, "a path from / on", "Nothing over there is relative to this file.")
    return value


def address(node: Node) -> str:
    """``user@host[:port]`` or a Host of ssh_config."""
    value = text(node)
    user, at, host = value.rpartition("@")
    if re.search(r"\s", value) or not host or (at and not user):
        raise unexpected(node, "user@host, user@host:port, or a Host of ssh_config")
    if user.startswith("-") or host.startswith("-"):
        raise wrong(node, f"{node.told} begins with a dash: ssh would take it for an option")
    return value


def variable_name(node: Node) -> str:
    """The name of a variable."""
    value = text(node)
    if not VARIABLE_NAME.match(value):
        raise unexpected(node, "a variable's name (letters, digits, underscores; no digit first)")
    return value


def json_table(node: Node) -> dict[str, Any]:
    """A mapping of JSON values."""
    if not isinstance(node, Table):
        raise unexpected(node, "a mapping")
    value: dict[str, Any] = json_value(node)
    return value


def json_value(node: Node) -> Any:
    """A JSON value: unquoted numbers, true, false and null are what JSON takes them for."""
    if isinstance(node, Table):
        return dict(gathered(pairs(node, lambda name, value: (name, json_value(value)))))
    if isinstance(node, Items):
        return gathered(partial(json_value, item) for item in node)
    if node.quoted or (node.kind == "text" and not _JSON_NUMBER.match(node.text)):
        return handed_on(node)
    if node.kind == "blank":
        raise unexpected(node, "a value")
    try:
        return json.loads(node.text)
    except ValueError:
        if node.kind == "null":
            return None
        hint = "Put it in quotes for a text" + ("." if node.is_secret else f": '{node.text}'.")
        raise unexpected(node, "a value that JSON knows", hint) from None


def pairs(
    node: Node, read: Callable[[str, Node], tuple[str, T]]
) -> Iterable[Callable[[], tuple[str, T]]]:
    """The readings of each entry of a mapping, for :func:`gathered`."""
    if not isinstance(node, Table):
        raise unexpected(node, "a mapping")
    return (partial(read, name, value) for name, value in node.items())


def _seconds_hint(node: Node) -> str:
    found = _DURATION.match(node.text) if isinstance(node, Scalar) else None
    return f"Write {int(found[1]) * _UNITS_S[found[2]]}." if found else ""


def _quote_hint(node: Node) -> str:
    if isinstance(node, Scalar) and node.kind in {"boolean", "number"} and not node.is_secret:
        return f"Put it in quotes for a text: '{node.text}'."
    return ""


def _list_hint(node: Node) -> str:
    if isinstance(node, Scalar) and node.kind == "text":
        words = ", ".join(redact.argv(node.text.split()))
        return f"Write [{words}]."
    return ""
