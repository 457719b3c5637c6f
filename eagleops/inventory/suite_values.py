"""What may stand in a suite of nightly checks, as its classes and its file's readers hold it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import SplitResult, urlsplit

import attrs

from eagleops.errors import InventoryError
from eagleops.inventory.problems import nearest
from eagleops.measuring import prompts
from eagleops.nights.catalogue import KINDS
from eagleops.nights.finding import kind_and_subject
from eagleops.profile import SecretReference
from eagleops.profile.values import passable

HIGHEST_STATUS = 255
# A speed needs two tokens to lie between.
FEWEST_TOKENS = 2
HIGHEST_PCT = 100.0
# node_exporter's textfile collector reads no other file:
# https://github.com/prometheus/node_exporter#textfile-collector
PROMETHEUS_SUFFIX = ".prom"

# A run's number, or the beginning of its uuid as the ledger takes it: 8 digits or more.
_PIN = re.compile(r"[1-9][0-9]{0,6}|[0-9a-f]{8}[0-9a-f-]{0,28}")
# A field name is a token: RFC 9110, section 5.1.
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_REFERENCE_HINT = "Or, since it is a secret, by reference: url: {secret: env:NAME}."


def refuse(problem: str, way_out: str = "") -> NoReturn:
    """Ends in the error of a value that no suite can have."""
    raise InventoryError(problem=problem, way_out=way_out)


def checked(check: Callable[[Any], object]) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """A validator of attrs that holds every value but None to ``check``.

    The error's ``where`` is the field.
    """

    def validator(_: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        try:
            check(value)
        except InventoryError as error:
            error.where = error.where or field.name
            raise

    return validator


def pin(value: str) -> None:
    """Refuses what names no run."""
    if not _PIN.fullmatch(value):
        refuse(
            f"expected a run's number or 8 or more digits of its uuid, got {value!r}",
            "`eagleops runs` lists them.",
        )


def argv(value: tuple[str, ...]) -> None:
    """Refuses what is no command."""
    if not value or not value[0].strip():
        refuse("expected a program and its arguments, got nothing to run")
    if value[0].startswith("~"):
        refuse(f"no shell reads {value[0]!r}, so ~ would stay ~", "Write the whole path.")
    if not all(map(passable, value)):
        refuse("it holds a NUL byte or half a surrogate pair: no process can get it")


def pattern(value: str) -> None:
    """Refuses what is no regular expression of Python's."""
    if not value:
        refuse("an empty pattern is found in everything", "Leave it out to expect no output.")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        refuse(f"{value!r} is no regular expression: {error}", "In quotes, YAML's 'single' ones.")


def figure_pattern(value: str) -> None:
    """Refuses a regular expression that marks no figure."""
    pattern(value)
    if not re.compile(value).groups:
        refuse(
            f"{value!r} has no group: nothing says which part is the figure",
            r"Put the figure in parentheses: '([0-9.]+) GB/s'.",
        )


def band(number: str | None, lowest: float | None, highest: float | None, unit: str) -> None:
    """Refuses limits of a figure that is not read, and a band that nothing is in."""
    for name, given in (("lowest", lowest), ("highest", highest), ("unit", unit or None)):
        if given is not None and number is None:
            raise InventoryError(
                problem="it is of a figure, and nothing says where the figure stands",
                where=name,
                way_out=r"Write number: '([0-9.]+) GB/s', the figure in parentheses.",
            )
    if lowest is not None and highest is not None and lowest > highest:
        raise InventoryError(
            problem=f"no figure is at least {lowest:g} and at most {highest:g}", where="lowest"
        )


def prompt_name(value: str) -> None:
    """Refuses a prompt that is not shipped."""
    if value not in prompts.NAMES:
        refuse(f"there is no prompt {value}", nearest(value, prompts.NAMES, "There are"))


def finite(value: float) -> None:
    """Refuses what is no number to compare with."""
    try:
        known = not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        refuse("expected a number that a computer can hold")
    if not known:
        refuse(f"expected a number, got {value!r}")


def above_zero(value: float) -> None:
    """Refuses a time that is none."""
    finite(value)
    if value <= 0:
        refuse(f"expected a number of seconds above 0, got {value:g}")


def not_below(lowest: int) -> Callable[[float], None]:
    """A check that refuses less than ``lowest``."""

    def check(value: float) -> None:
        finite(value)
        if value < lowest:
            refuse(f"expected a number from {lowest} up, got {value:g}")

    return check


def prometheus_file(value: Path) -> None:
    """Refuses a file that node_exporter would pass over."""
    if value.suffix != PROMETHEUS_SUFFIX:
        refuse(
            f"node_exporter's textfile collector reads *{PROMETHEUS_SUFFIX} alone, "
            f"not {value.name!r}",
            f"Call it {value.stem or 'eagleops'}{PROMETHEUS_SUFFIX}.",
        )


def url(value: str) -> None:
    """Refuses what no message can be sent to. The error shows none of it: it may be a secret."""
    if isinstance(value, SecretReference):
        return
    if re.search(r"[\s\x00-\x1f\x7f]", value):
        refuse("a URL holds no blanks and no control characters", _REFERENCE_HINT)
    split = _split(value)
    if split.scheme not in {"http", "https"} or not split.hostname:
        refuse("expected a URL that begins with https:// or http:// and a host", _REFERENCE_HINT)
    if split.password is not None or split.username is not None:
        refuse(
            "a URL with a user and a password in it ends up in other people's logs",
            "Send them as a header: {Authorization: {secret: env:NAME}}.",
        )


def headers(value: Mapping[str, str]) -> None:
    """Refuses what no HTTP request can carry. The error names headers, never their values."""
    for name, text in value.items():
        header(name, text)


def header(name: str, text: str) -> None:
    """Refuses one header that no HTTP request can carry."""
    if not _HEADER.fullmatch(name):
        refuse(f"{name!r} is no header's name")
    # RFC 9110, section 5.5; more than ISO-8859-1 has no bytes in a header.
    if not isinstance(text, SecretReference) and not re.fullmatch(r"[\t\x20-\x7e\xa0-\xff]*", text):
        refuse(f"the value of {name} holds what no header can: a line break, or other than Latin-1")


def known_kind(kind: str) -> None:
    """Refuses what is no kind of check."""
    if kind not in KINDS:
        refuse(f"there is no check {kind}", nearest(kind, KINDS, "There are"))


def limits(checks: Mapping[str, Any]) -> None:
    """Refuses rules for no kind of check, and limits that a kind does not have."""
    for name, entry in checks.items():
        kind, _ = kind_and_subject(name)
        known_kind(kind)
        limit_of(kind, entry.limit)


def limit_of(kind: str, limit: float | None) -> None:
    """Refuses a limit that the kind of check does not have."""
    if limit is None:
        return
    known = KINDS[kind]
    if known.limit is None:
        refuse(f"{kind} has no limit: there is no figure in it", "It takes a severity alone.")
    finite(limit)
    if limit < 0:
        refuse(f"expected a limit from 0 up, got {limit:g}")
    if known.unit == "%" and limit > HIGHEST_PCT:
        refuse(f"expected a limit from 0 to 100 %, got {limit:g}")


def shown_url(value: str | SecretReference) -> str:
    """A webhook as a repr tells it: the host, none of the path."""
    if isinstance(value, SecretReference):
        return repr(value)
    split = _split(value)
    return repr(f"{split.scheme}://{split.hostname}/...")


def host_of(value: str) -> str:
    """The host of a webhook's URL, and its port where it is named."""
    split = _split(value)
    return f"{split.hostname}:{split.port}" if split.port else f"{split.hostname}"


def shown_headers(value: Mapping[str, Any]) -> str:
    """Headers as a repr tells them: their names."""
    return repr(sorted(value))


def _split(value: str) -> SplitResult:
    try:
        split = urlsplit(value)
        _ = split.port
    except ValueError:
        refuse("it is no URL: its host or its port cannot be read", _REFERENCE_HINT)
    return split
