"""How a profile's own sections are read: variables, flags, named values, secrets."""

from __future__ import annotations

from typing import Any

from eagleops.inventory import readers
from eagleops.inventory.document import Items, Node, Scalar, Table
from eagleops.profile import secret
from eagleops.profile.values import FALSE_FLAG, FLAG_NAME, VARIABLE_NAME
from eagleops.remote import redact


def env(node: Node) -> dict[str, Any]:
    """A profile's variables; None removes one."""

    def read(name: str, value: Node) -> tuple[str, Any]:
        if not VARIABLE_NAME.match(name):
            problem = f"{redact.text(name)!r} is no variable's name"
            raise readers.wrong(value, problem, "Letters, digits and underscores; no digit first.")
        if isinstance(value, Scalar) and value.kind == "boolean":
            quoted = f"Put it in quotes: '{value.text}'. Unquoted, YAML 1.1 reads true or false."
            raise readers.unexpected(value, "a text or a number", quoted)
        if isinstance(value, Scalar) and value.kind == "blank":
            raise readers.unexpected(
                value, "a text or a number", "Write null to remove it, or '' for an empty value."
            )
        if isinstance(value, Scalar) and value.kind == "null":
            return name, None
        return name, secret_mapping(value) if isinstance(value, Table) else readers.handed_on(value)

    return dict(readers.gathered(readers.pairs(node, read)))


def values(node: Node) -> dict[str, str | None]:
    """A profile's named values; None removes one."""

    def read(name: str, value: Node) -> tuple[str, str | None]:
        if not VARIABLE_NAME.match(name):
            problem = f"{redact.text(name)!r} is no value's name"
            raise readers.wrong(value, problem, "Letters, digits and underscores; no digit first.")
        if isinstance(value, Scalar) and value.kind == "null":
            return name, None
        return name, readers.handed_on(value)

    return dict(readers.gathered(readers.pairs(node, read)))


def secret_mapping(node: Table) -> dict[str, Any]:
    """A secret by reference, still as a mapping: the profile makes a reference of it."""
    if set(node) != {secret.KEY}:
        raise readers.unexpected(node, "a text or a number", secret.HINT)
    place = readers.text(node[secret.KEY])
    try:
        secret.reference({secret.KEY: place})
    except ValueError as error:
        raise readers.wrong(node, "it says of no secret where its value is", str(error)) from None
    return {secret.KEY: place}


def args(node: Node) -> dict[str, Any]:
    """A profile's flags; None removes one."""

    def read(name: str, value: Node) -> tuple[str, Any]:
        if not FLAG_NAME.match(name):
            bare = name.lstrip("-")
            way_out = f"Write it without its dashes: {bare}." if FLAG_NAME.match(bare) else ""
            raise readers.wrong(value, f"{redact.text(name)!r} is no flag's name", way_out)
        return name, _flag_value(value)

    return dict(readers.gathered(readers.pairs(node, read)))


def _flag_value(value: Node) -> Any:
    if isinstance(value, Table):
        return secret_mapping(value) if set(value) == {secret.KEY} else readers.json_table(value)
    if isinstance(value, Items):
        return readers.list_of(_flag_item)(value)
    if value.kind == "boolean":
        if readers.yes_or_no(value):
            return True
        raise readers.wrong(value, f"{value.text} is no flag's value", FALSE_FLAG)
    if value.kind == "null":
        return None
    if value.kind == "blank":
        raise readers.unexpected(
            value, "a value", "true for a bare flag, null to leave it out, '' for an empty value."
        )
    return readers.handed_on(value)


def _flag_item(item: Node) -> Any:
    return readers.json_table(item) if isinstance(item, Table) else readers.handed_on(item)
