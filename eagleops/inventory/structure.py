"""From the tree of a document to typed entries, every problem of every section in one pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override

from eagleops.errors import UsageError
from eagleops.inventory import profile_readers, readers, suite_readers
from eagleops.inventory.document import Node, Scalar, Table
from eagleops.inventory.entries import ContainerEntry, Defaults, HostEntry, SimSettings
from eagleops.inventory.problems import Problem, Wrong, nearest
from eagleops.inventory.readers import Reader
from eagleops.profile import ProfileEntry
from eagleops.profile.values import PORTS
from eagleops.remote import redact

T = TypeVar("T")

_HIGHEST_VMID = 999_999_999
_MOST_SIM_GPUS = 32


def _within(node: Node, kind: type[Any]) -> Any:
    """An entry in another one: a name that stands before what it needs."""
    return structured(node, kind)


# The keys of each section, and how the value of each is read.
_REACH: Mapping[str, Reader] = {
    "address": readers.address,
    "python": readers.program,
    "host_keys": readers.one_of("strict", "accept-new"),
    "known_hosts": readers.list_of(readers.path, single=True),
    "identity_file": readers.list_of(readers.path, single=True),
    "ssh_config": readers.path,
    "via": readers.text,
    "connect_timeout_s": readers.seconds,
    "idle_mib": readers.whole_number(0),
    "state_home": readers.absolute_path,
}
FIELDS: Mapping[type, Mapping[str, Reader]] = {
    Defaults: {"host": readers.text, "profile": readers.text},
    SimSettings: {
        "gpus": readers.whole_number(1, _MOST_SIM_GPUS),
        "directory": readers.path,
    },
    HostEntry: {
        "transport": readers.one_of("ssh", "local", "sim"),
        **_REACH,
        "sim": lambda node: structured(node, SimSettings),
    },
    ContainerEntry: {
        "on": readers.text,
        "kind": readers.one_of("pct", "docker", "lxc", "incus"),
        "vmid": readers.whole_number(1, _HIGHEST_VMID),
        "name": readers.text,
        "program": readers.program,
        **_REACH,
    },
    ProfileEntry: {
        "abstract": readers.yes_or_no,
        "extends": readers.list_of(readers.text, single=True),
        "engine": readers.text,
        "model": readers.text,
        "port": readers.whole_number(PORTS.start, PORTS.stop - 1),
        "python": readers.program,
        "args": profile_readers.args,
        "env": profile_readers.env,
        "env_file": readers.list_of(readers.text, single=True),
        "values": profile_readers.values,
        "inherit": readers.list_of(readers.variable_name, single=True),
        "command": readers.list_of(readers.handed_on),
        "cwd": readers.absolute_path,
        "gpus": readers.list_of(readers.whole_number(0)),
        "sim": readers.json_table,
    },
    **suite_readers.fields(_within),
}
# What people write, going by ssh_config and by other tools, and what it is called here.
_MEANT = {
    "host": "address: user@host",
    "hostname": "address: user@host",
    "ip": "address: user@host",
    "user": "address: user@host",
    "port": "address: user@host:port",
    "key": "identity_file",
    "jump": "via",
    "proxy_jump": "via",
    "environment": "env",
    "arguments": "args",
    "flags": "args",
    "inherits": "extends",
    "parent": "extends",
    "command": "run",
    "argv": "run",
    "expect": "stdout",
    "regex": "stdout",
    "min": "lowest",
    "max": "highest",
    "threshold": "limit",
    "level": "severity",
    "webhook": "notify",
    "webhooks": "notify",
    "timeout_s": "limit_s",
    "cron": "schedule",
    "when": "schedule",
    "oncalendar": "schedule",
}
# Sections that may stand empty, as they do when each of their lines is a comment.
_MAY_BE_BLANK = {"args", "env", "env_file", "values", "inherit", "sim", "extends"}
# Where the name and the line of an entry are put: no key of any section.
_NAME, _ORIGIN, _REMOVED, _LINES = "(name)", "(origin)", "(removed)", "(lines)"


def section(node: Node | None, kind: type[T], file: str) -> dict[str, T]:
    """The entries of a section by name; empty where there is no such section.

    Raises:
        Wrong: with the problems of all of them.
    """
    if node is None or _is_blank(node):
        return {}
    if not isinstance(node, Table):
        raise readers.unexpected(node, "a mapping of names")

    def read(name: str, value: Node) -> tuple[str, T]:
        origin = f"{file}:{value.line}"
        return name, structured(value, kind, {_NAME: name, _ORIGIN: origin})

    return dict(readers.gathered(readers.pairs(node, read)))


def structured(node: Node, kind: type[T], also: Mapping[str, Any] | None = None) -> T:
    """One entry.

    Args:
        node: Its mapping.
        kind: The class.
        also: Values that stand nowhere in the mapping.

    Raises:
        Wrong: with all of its problems.
    """
    if not isinstance(node, Table):
        if not _is_blank(node):
            raise readers.unexpected(node, "a mapping")
        node = Table(node.key, node.line)
    nulls = frozenset(name for name, value in node.items() if _is_null(value))
    given = {
        name: value
        for name, value in node.items()
        if name not in nulls and not (name in _MAY_BE_BLANK and _is_blank(value))
    }
    problems = [*_unknown(node, kind), *_missing(node, kind, given)]
    converter = _converter(kind)  # type: ignore[arg-type] # a class is hashable
    try:
        values = {**given, **(also or {}), _REMOVED: nulls, _LINES: _lines(node)}
        entry: T = converter.structure(values, kind)
    except cattrs.ClassValidationError as error:
        problems += _problems(error, node)
    if problems:
        raise Wrong(*problems)
    return entry


@cache
def _converter(kind: Any) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=True)
    fields = FIELDS[kind]
    overrides: dict[str, Any] = {
        "name": override(rename=_NAME, struct_hook=_as_it_is),
        "origin": override(rename=_ORIGIN, struct_hook=_as_it_is),
        "removed": override(rename=_REMOVED, struct_hook=_as_it_is),
        "lines": override(rename=_LINES, struct_hook=_as_it_is),
        "container_name": override(rename="name", struct_hook=_hook(readers.text)),
    }
    overrides |= {
        name: override(struct_hook=_hook(r)) for name, r in fields.items() if name != "name"
    }
    converter.register_structure_hook(
        kind,
        make_dict_structure_fn(
            kind,
            converter,
            **{name: chosen for name, chosen in overrides.items() if _has(kind, name)},
        ),
    )
    return converter


def _lines(node: Table, lead: str = "") -> dict[str, int]:
    """The line of each key, of the mappings in it too."""
    lines: dict[str, int] = {}
    for name, value in node.items():
        lines[f"{lead}{name}"] = value.line
        if not lead and isinstance(value, Table):
            lines |= _lines(value, f"{name}.")
    return lines


def _has(kind: type[Any], name: str) -> bool:
    return name in attrs.fields_dict(kind)


def _hook(reader: Reader) -> Callable[[Any, Any], Any]:
    return lambda node, _: reader(node)


def _as_it_is(value: Any, _: Any) -> Any:
    return value


def _problems(error: cattrs.ClassValidationError, node: Table) -> list[Problem]:
    found: list[Problem] = []
    for inner in error.exceptions:
        if isinstance(inner, Wrong):
            found += inner.problems
        elif isinstance(inner, UsageError):  # the class refused a value that had the right kind
            where = node.get(inner.where, node)
            found.append(Problem(where.line, where.key, inner.problem, inner.way_out))
        elif not isinstance(inner, KeyError):  # a missing key: _missing tells it
            raise inner
    return found


def _unknown(node: Table, kind: type[Any]) -> list[Problem]:
    fields = FIELDS[kind]
    problems = []
    for name, value in node.items():
        if name not in fields:
            problem = f"there is no key {redact.text(name)} here"
            problems.append(Problem(value.line, value.key, problem, _known_name(name, fields)))
    return problems


def _known_name(name: str, fields: Mapping[str, Reader]) -> str:
    meant = _MEANT.get(name.lower(), "")
    if meant and meant.partition(":")[0] in fields:
        return f"Write {meant}."
    return nearest(name, fields, "It may hold")


def missing_keys(kind: type[Any], given: Mapping[str, Any]) -> list[str]:
    """The keys that an entry must have and ``given`` has not."""
    required = [name for name in FIELDS[kind] if _has(kind, name) and _is_required(kind, name)]
    return [name for name in required if name not in given]


def _missing(node: Table, kind: type[Any], given: Mapping[str, Node]) -> list[Problem]:
    return [
        Problem(node.line, node.key, f"the key {name} is missing")
        for name in missing_keys(kind, given)
    ]


def _is_required(kind: type[Any], name: str) -> bool:
    return name != "name" and attrs.fields_dict(kind)[name].default is attrs.NOTHING


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind == "null"


def _is_blank(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind in {"blank", "null"}
