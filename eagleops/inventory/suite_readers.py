"""How the keys of the ``nightly:`` section are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from eagleops.errors import InventoryError
from eagleops.inventory import readers
from eagleops.inventory import suite_values as values
from eagleops.inventory.document import Node, Scalar, Table
from eagleops.inventory.profile_readers import secret_mapping
from eagleops.inventory.readers import Reader
from eagleops.inventory.schedule import schedule
from eagleops.inventory.suite import (
    CheckEntry,
    CommandCheck,
    MeasureEntry,
    ProfileCheck,
    SuiteEntry,
    WebhookEntry,
)
from eagleops.measuring import prompts
from eagleops.nights.finding import kind_and_subject
from eagleops.profile import SecretReference
from eagleops.profile.secret import reference

Structured = Callable[[Node, type[Any]], Any]
SEVERITIES = ("warn", "fail", "off")


def fields(structured: Structured) -> dict[type, Mapping[str, Reader]]:
    """The keys of each of the section's classes, and how the value of each is read.

    Args:
        structured: Makes an object of a class from a mapping.
    """

    def nested(kind: type[Any]) -> Reader:
        return lambda node: structured(node, kind)

    def profile(node: Node) -> ProfileCheck:
        if isinstance(node, Scalar):
            return ProfileCheck(profile=readers.text(node))
        one: ProfileCheck = structured(node, ProfileCheck)
        return one

    suite: Mapping[str, Reader] = {
        "hosts": readers.list_of(readers.text, single=True),
        "profiles": readers.list_of(profile, single=True),
        "commands": _by_name(nested(CommandCheck)),
        "checks": _by_name(nested(CheckEntry), _check),
        "measure": nested(MeasureEntry),
        "busy": readers.one_of("skip", "wait", "force"),
        "wait_limit_s": readers.seconds,
        "limit_s": readers.seconds,
        "ready_limit_s": readers.seconds,
        "restore": readers.yes_or_no,
        "resume_within_s": _checked(figure, values.not_below(0)),
        "history_nights": readers.whole_number(1),
        "keep_nights": readers.whole_number(1),
        "reports": readers.path,
        "prometheus": _checked(readers.path, values.prometheus_file),
        "notify": _webhooks(nested(WebhookEntry)),
        "schedule": _checked(readers.handed_on, schedule),
    }
    return {SuiteEntry: suite, **_WITHIN}


def severity(node: Node) -> str | None:
    """A severity in any of YAML's spellings; None for ``on``: as the catalogue has it."""
    if isinstance(node, Scalar) and (node.kind == "boolean" or node.text == "on"):
        return None if readers.truth(node.text) else "off"
    if isinstance(node, Scalar) and node.kind == "number":
        raise readers.unexpected(
            node, "a severity (warn, fail, off)", f"A limit? Write {{limit: {node.text}}}."
        )
    return readers.one_of(*SEVERITIES)(node)


def figure(node: Node) -> float:
    """A number, whole or with a fraction."""
    value = readers.number(node)
    if value is None:
        raise readers.unexpected(node, "a number")
    return value


def _checked(read: Callable[[Node], Any], check: Callable[[Any], Any]) -> Reader:
    """A reader whose value ``check`` has to take: its refusal is told with the value's place."""

    def read_checked(node: Node) -> Any:
        value = read(node)
        _hold(node, check, value)
        return value

    return read_checked


def _hold(node: Node, check: Callable[[Any], object], value: Any) -> None:
    try:
        check(value)
    except InventoryError as error:
        raise readers.wrong(node, error.problem, error.way_out) from None


def _by_name(
    whole: Callable[[Node], Any], read: Callable[[str, Node, Reader], Any] | None = None
) -> Reader:
    def read_all(node: Node) -> dict[str, Any]:
        def one(name: str, value: Node) -> tuple[str, Any]:
            return name, whole(value) if read is None else read(name, value, whole)

        return dict(readers.gathered(readers.pairs(node, one)))

    return read_all


def _check(name: str, node: Node, whole: Reader) -> CheckEntry:
    """One line of ``checks``: a severity alone, or a mapping."""
    kind, _ = kind_and_subject(name)
    _hold(node, values.known_kind, kind)
    if isinstance(node, Scalar) and node.kind != "null":
        return CheckEntry(severity=severity(node))  # type: ignore[arg-type] # read as one
    entry: CheckEntry = whole(node)
    where = node.get("limit", node) if isinstance(node, Table) else node
    _hold(where, partial(values.limit_of, kind), entry.limit)
    return entry


def _webhooks(whole: Reader) -> Reader:
    """A list of mappings. What stands there bare is a URL, mostly, and secret: it is not told."""
    way_out = "Write - {url: {secret: env:NAME}, shape: slack}."

    def one(node: Node) -> Any:
        if isinstance(node, Scalar):
            raise readers.wrong(node, "expected a mapping with a url in it", way_out)
        return whole(node)

    def read(node: Node) -> tuple[Any, ...]:
        if isinstance(node, Scalar):
            raise readers.wrong(node, "expected a list of webhooks", way_out)
        return readers.list_of(one)(node)

    return read


def _value_or_secret(node: Node) -> str | SecretReference:
    if isinstance(node, Table):
        return reference(secret_mapping(node))
    if not isinstance(node, Scalar) or node.kind not in {"text", "number"} or not node.text:
        # What stands there may be a secret: it is not told.
        raise readers.wrong(node, "expected a text, or {secret: env:NAME}")
    return readers.handed_on(node)


def _headers(node: Node) -> dict[str, str | SecretReference]:
    def read(name: str, value: Node) -> tuple[str, str | SecretReference]:
        found = _checked(_value_or_secret, lambda text: values.header(name, text))(value)
        return name, found

    return dict(readers.gathered(readers.pairs(node, read)))


# The classes that stand within a suite's.
_WITHIN: Mapping[type, Mapping[str, Reader]] = {
    ProfileCheck: {
        "profile": readers.text,
        "pin": _checked(readers.handed_on, values.pin),
    },
    CheckEntry: {"severity": severity, "limit": figure},
    CommandCheck: {
        "run": _checked(readers.list_of(readers.handed_on), values.argv),
        "exit_status": readers.whole_number(0, values.HIGHEST_STATUS),
        "stdout": _checked(readers.handed_on, values.pattern),
        "number": _checked(readers.handed_on, values.figure_pattern),
        "lowest": figure,
        "highest": figure,
        "unit": readers.handed_on,
        "timeout_s": readers.seconds,
        "needs_idle_gpus": readers.yes_or_no,
        "severity": severity,
    },
    MeasureEntry: {
        "runs": readers.whole_number(1),
        "tokens": readers.whole_number(values.FEWEST_TOKENS),
        "warmups": readers.whole_number(0),
        "prompt": readers.one_of(*prompts.NAMES),
    },
    WebhookEntry: {
        "url": _checked(_value_or_secret, values.url),
        "shape": readers.one_of("json", "slack"),
        "headers": _headers,
    },
}
