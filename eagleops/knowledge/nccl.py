"""NCCL's variables: which there are, what each may hold, and what a wrong value costs.

The facts and their sources stand in ``nccl.toml`` beside this module. It is TOML because
versions are: YAML reads an unquoted 2.30 as 2.3, and ``NO`` as false.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal

import attrs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Kind = Literal["switch", "integer", "word", "words", "choices", "level", "text"]
# What becomes of a value that is not allowed: see nccl.toml.
Cost = Literal["fatal", "ignored", "changed", "taken"]


@attrs.frozen(kw_only=True)
class Variable:
    """One variable, as ``nccl.toml`` describes it.

    Attributes:
        allowed: Its words, or its numbers where they are few; empty for any.
        versions: Of a word that came or went: from, and up to.
        levels: The words that its legacy numbers stand for.
        functions: What a list may be for, in NCCL_ALGO's grammar.
        least_advised: Below it a value is taken, and hurts.
        fatal_since: From this version of NCCL on, a wrong value is fatal; before,
            ``wrong_before`` becomes of it.
        read: ``each`` communicator of two or more ranks, ``init`` of any such, or where it is
            first needed (empty).
    """

    name: str
    kind: Kind
    source: str
    allowed: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    versions: Mapping[str, list[str]] = attrs.field(factory=dict)
    levels: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    functions: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    any_case: bool = False
    least: int | None = None
    most: int | None = None
    least_advised: int | None = None
    multiple_of: int | None = None
    power_of_two: bool = False
    unit: str = ""
    default: str = ""
    wrong: Cost = "taken"
    wrong_before: Cost = "ignored"
    fatal_since: str = ""
    since: str = ""
    deprecated: str = ""
    removed: str = ""
    heir: str = ""
    read: Literal["each", "init", ""] = ""
    logged: bool = True
    debugging: bool = False
    note: str = ""

    def knows(self, word: str) -> bool:
        """Whether ``word`` is one of the allowed ones."""
        if self.any_case:
            return word.lower() in {known.lower() for known in self.allowed}
        return word in self.allowed


@attrs.frozen
class Table:
    """All that is known of NCCL's environment.

    Attributes:
        variables: Those that are described, by name.
        undescribed: Names that NCCL reads and nobody describes.
        foreign: Names with ``NCCL_`` in front that others than NCCL read.
        names: Every name that NCCL reads.
    """

    variables: Mapping[str, Variable]
    undescribed: frozenset[str]
    foreign: frozenset[str]
    names: frozenset[str] = attrs.field(init=False)

    @names.default
    def _every(self) -> frozenset[str]:
        return self.undescribed | self.variables.keys()


@cache
def table() -> Table:
    """The table, read once."""
    text = (resources.files("eagleops.knowledge") / "nccl.toml").read_text(encoding="utf-8")
    document: dict[str, Any] = tomllib.loads(text)
    return Table(
        MappingProxyType(
            {name: Variable(name=name, **row) for name, row in document["variables"].items()}
        ),
        frozenset(document["names"]["undescribed"]),
        frozenset(document["names"]["foreign"]),
    )


def variable(name: str) -> Variable | None:
    """What is known of the variable ``name``; None where nothing is."""
    return table().variables.get(name)


def words_of(value: str) -> list[str]:
    """The words of a list: ``^Ring,Tree`` or, per function, ``allreduce:tree;broadcast:ring``."""
    lists = (part.rpartition(":")[2] for part in value.split(";"))
    return [word for each in lists for word in each.strip("^").split(",") if word]


def version_number(version: str) -> tuple[int, ...]:
    """A version to be compared: ``2.21.5+cuda12.4`` is (2, 21, 5)."""
    plain = version.partition("+")[0]
    return tuple(int(part) for part in plain.split(".") if part.isdigit())
