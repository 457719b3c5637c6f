"""What may stand in a profile: flags' values, variables, ports, as launch needs them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from eagleops.errors import ProfileError
from eagleops.profile.secret import SecretReference, is_reference, reference
from eagleops.remote import redact

# A text (a number as it was written), True for a bare flag, a tuple for several values, a
# mapping for one value in JSON.
ArgValue: TypeAlias = str | bool | tuple[str | Mapping[str, Any], ...] | Mapping[str, Any]

# exec takes any name without "="; what a shell could not set is a slip, not a wish.
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# One leading dash is for the short flags of some engines, for example -tp.
FLAG_NAME = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9_.+-]*\Z")
PORTS = range(1, 65536)

FALSE_FLAG = (
    "null leaves a flag out; a text 'false' in quotes is handed on; some flags are turned off "
    "by another one, no-<flag>: true."
)
BOOLEAN_VARIABLE = "A variable is a text: put the value in quotes, for example '1' or 'true'."


def frozen_mapping(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """A read-only copy that keeps the order."""
    return MappingProxyType(dict(mapping))


def strings(values: Iterable[str]) -> tuple[str, ...]:
    """A tuple of texts; one text alone is a tuple of one."""
    return (values,) if isinstance(values, str) else tuple(values)


def arg_values(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Flags as :class:`~eagleops.profile.Profile` holds them; None stays None.

    Raises:
        ProfileError: for a name that is no flag's, or a value that no argv can hold.
    """
    return frozen_mapping({name: _arg_value(_flag(name), value) for name, value in args.items()})


def env_values(env: Mapping[str, Any]) -> Mapping[str, Any]:
    """Variables as texts; None stays None.

    Raises:
        ProfileError: for a name that is no variable's, or a value that is no text or number.
    """
    return frozen_mapping({name: _env_value(name, value) for name, value in env.items()})


def redacted(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flags or variables as JSON, the values of secret names replaced."""
    return {
        name: value.to_dict()
        if isinstance(value, SecretReference)
        else redact.json_value(_as_json(value), name)
        for name, value in values.items()
    }


def shown(values: Mapping[str, Any]) -> str:
    """Flags or variables as a repr tells them: without secrets."""
    return repr(redacted(values))


def shown_argv(argv: Iterable[str] | None) -> str:
    """A command as a repr tells it: without secrets."""
    return repr(None if argv is None else redact.argv(list(argv)))


def passable(text: str) -> bool:
    """Whether exec can hand ``text`` on: no NUL byte, and every character has bytes."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def port_number(value: int | None) -> int | None:
    """``value``, once it is seen to be a port.

    Raises:
        ProfileError: unless it is None or a number from 1 to 65535.
    """
    if value is not None and (type(value) is not int or value not in PORTS):
        raise ProfileError(
            problem=f"expected a number from 1 to 65535, got {value!r}", where="port"
        )
    return value


def gpu_indices(value: Iterable[int] | None) -> tuple[int, ...] | None:
    """``value`` as a tuple, once it is seen to name GPUs.

    Raises:
        ProfileError: unless it is None or different indices, none below 0.
    """
    if value is None:
        return None
    indices = tuple(value)
    wrong = [index for index in indices if type(index) is not int or index < 0]
    if wrong or not indices or len(set(indices)) != len(indices):
        raise ProfileError(
            problem=f"expected different GPU indices from 0 up, got {list(indices)!r}",
            where="gpus",
        )
    return indices


def _flag(name: str) -> str:
    if not FLAG_NAME.match(name):
        bare = name.lstrip("-")
        raise ProfileError(
            problem=f"{name!r} is no flag's name",
            where="args",
            way_out=f"Write it without its dashes: {bare}." if FLAG_NAME.match(bare) else "",
        )
    return name


def _arg_value(name: str, value: Any) -> Any:
    where = f"args.{name}"
    if value is False:
        raise ProfileError(problem="false is no flag's value", where=where, way_out=FALSE_FLAG)
    if value is None or value is True:
        return value
    if is_reference(value):
        return _reference(value, where)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return tuple(_one(item, where) for item in value)
    return _one(value, where)


def _one(value: Any, where: str) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return _text(value, where)


def _env_value(name: str, value: Any) -> str | None:
    if not VARIABLE_NAME.match(name):
        raise ProfileError(
            problem=f"{name!r} is no variable's name",
            where="env",
            way_out="Letters, digits and underscores; no digit first.",
        )
    if is_reference(value):
        return _reference(value, f"env.{name}")
    return None if value is None else _text(value, f"env.{name}", BOOLEAN_VARIABLE)


def _reference(value: Mapping[str, Any], where: str) -> SecretReference:
    try:
        return reference(value)
    except ValueError as error:
        problem = "it says of no secret where its value is"
        raise ProfileError(problem=problem, where=where, way_out=str(error)) from None


def _text(value: Any, where: str, way_out: str = "") -> str:
    name = where.partition(".")[2]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        told = redact.REDACTED if redact.is_secret(name, str(value)) else repr(value)
        problem = f"expected a text or a number, got {told}"
        raise ProfileError(problem=problem, where=where, way_out=way_out)
    text = value if isinstance(value, str) else repr(value)
    if not passable(text):
        raise ProfileError(
            problem=f"{redact.value(name, text)!r} cannot be handed to a process: it holds a NUL "
            "byte or half a surrogate pair",
            where=where,
        )
    return text


def _as_json(value: ArgValue | None) -> Any:
    return list(value) if isinstance(value, tuple) else value
