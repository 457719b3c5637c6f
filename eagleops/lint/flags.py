"""Rules on the flags themselves: which there are, and what they take."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.engines.flags import dashed
from eagleops.knowledge.flags import TYPO, Flag, FlagTable, fits, shipped
from eagleops.lint.finding import Severity
from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject
from eagleops.profile import SecretReference

_ENGINES = ("sglang", "vllm")


def _each(subject: Subject) -> tuple[tuple[str, str], ...]:
    """Each flag of the profile as it is written, and where it stands."""
    return subject.flag_places


def _versions(table: FlagTable) -> str:
    if table.installed:
        return f"{table.engine} {table.versions[0]}"
    return f"{table.engine} {table.versions[0]} to {table.versions[-1]}"


@rule("flag-unknown", "error", *_ENGINES)
def unknown(subject: Subject) -> Iterator[Told]:
    """The engine has such a flag, or had one."""
    table, known = subject.table, shipped(subject.profile.engine)
    for flag, where in _each(subject):
        if table is None or table.find(flag) or len(table.beginnings(flag)) > 1:
            continue
        if known is not None and known.exact(flag) is not None:
            continue  # told by flag-removed or flag-not-yet
        near = table.nearest(flag)
        typo = table.nearest(flag, TYPO) is not None
        severity: Severity = "error" if typo or table.installed else "warning"
        message = f"{_versions(table)} has no flag {flag}: it ends the server at its start"
        yield where, message, f"Did you mean {near}?" if near else "", severity


@rule("flag-removed", "warning", *_ENGINES)
def removed(subject: Subject) -> Iterator[Told]:
    """The flag is still there in the newest version, or in the installed one."""
    known = shipped(subject.profile.engine)
    for flag, where in _each(subject):
        row = known.exact(flag) if known else None
        if known is None or row is None:
            continue
        gone = known.versions[row.last + 1] if row.last < known.newest else ""
        if subject.facts.flags is not None:
            if gone and subject.facts.flags.find(flag) is None and not _later(subject, row):
                installed = subject.facts.engine_version
                message = f"{subject.profile.engine} {installed} has no {flag} any more"
                yield where, message, _heir(row), "error"
        elif gone:
            since = f"since {gone} at the latest" if row.last >= 0 else "in any version from 0.9 on"
            yield where, f"{subject.profile.engine} has no {flag} {since}", _heir(row)


@rule("flag-not-yet", "error", *_ENGINES)
def not_yet(subject: Subject) -> Iterator[Told]:
    """The flag is there already in the installed version (asked with --host)."""
    known, installed = shipped(subject.profile.engine), subject.facts.flags
    for flag, where in _each(subject):
        row = known.exact(flag) if known else None
        if known is None or row is None or installed is None or installed.find(flag):
            continue
        if _later(subject, row):
            came = known.versions[row.first]
            message = f"{flag} came by {subject.profile.engine} {came}; installed is "
            yield where, message + f"{subject.facts.engine_version}, which has none", ""


def _later(subject: Subject, row: Flag) -> bool:
    """Whether the flag came after the installed version."""
    known, version = shipped(subject.profile.engine), subject.facts.engine_version
    if known is None or not version or row.first <= 0:
        return False
    return _number(version) < _number(known.versions[row.first])


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())


@rule("flag-deprecated", "note", *_ENGINES)
def deprecated(subject: Subject) -> Iterator[Told]:
    """The engine does not warn of the flag."""
    known = shipped(subject.profile.engine)
    for flag, where in _each(subject):
        row = known.exact(flag) if known else None
        if known and row and row.deprecated is not None and row.last == known.newest:
            since = known.versions[row.deprecated]
            message = (
                f"{subject.profile.engine} calls {flag} deprecated, from {since} at the latest"
            )
            yield where, message, _heir(row)


@rule("flag-abbreviated", "note", *_ENGINES)
def abbreviated(subject: Subject) -> Iterator[Told]:
    """The flag is written out: a beginning stops working when a new flag begins alike."""
    for flag, where in _each(subject):
        table = subject.table
        if table is None or table.exact(flag) is not None:
            continue
        found = table.beginnings(flag)
        if len(found) == 1:
            yield (
                where,
                (
                    f"{flag} is the beginning of {found[0]} and works as long as no other "
                    "flag begins so"
                ),
                f"Write {found[0].lstrip('-')}.",
            )
        elif found:
            message = f"{flag} is the beginning of {', '.join(found)}: the engine refuses it"
            yield where, message, "Write one of them out.", "error"


@rule("flag-value", "warning", *_ENGINES)
def value(subject: Subject) -> Iterator[Told]:
    """The flag's value is one that the engine takes."""
    for name, given in subject.profile.args.items():
        flag = subject.known(name)
        if flag is None or not flag.choices or isinstance(given, SecretReference):
            continue
        items = given if isinstance(given, tuple) else (given,)
        for item in items:
            if isinstance(item, str) and item not in flag.choices:
                few = ", ".join(flag.choices[:12]) + (", ..." if len(flag.choices) > 12 else "")  # noqa: PLR2004
                severity: Severity = "error" if subject.asked else "warning"
                message = f"{flag.name} takes {few}; not {item!r}"
                yield subject.profile.place(f"args.{name}"), message, "", severity


@rule("flag-arity", "error", *_ENGINES)
def arity(subject: Subject) -> Iterator[Told]:
    """A flag that takes a value has one, and a switch has none."""
    for name, given in subject.profile.args.items():
        flag = subject.known(name)
        if flag is None or fits(flag, given):
            continue
        where = subject.profile.place(f"args.{name}")
        if given is True:
            yield where, f"{flag.name} takes a value, and has none", f"Write `{name}: VALUE`."
        elif flag.takes in {"none", "pair"}:
            message = f"{flag.name} is a switch and takes no value"
            yield where, message, f"Write `{name}: true`, or null to leave it out."
        else:
            yield where, f"{flag.name} takes one value, not several", ""


@rule("flag-twice", "error", *_ENGINES)
def twice(subject: Subject) -> Iterator[Told]:
    """No flag is given under two of its names."""
    seen: dict[str, str] = {}
    for name, given in subject.profile.args.items():
        flag = subject.known(name)
        canonical = flag.of if flag else dashed(name)
        if canonical in seen:
            other = seen[canonical]
            same = subject.profile.args[other] == given
            severity: Severity = "warning" if same else "error"
            message = f"{dashed(name)} and {dashed(other)} are names of one flag"
            message += "" if same else ", with different values: the last one wins"
            yield subject.profile.place(f"args.{name}"), message, "Keep one of them.", severity
        seen[canonical] = name


def _heir(row: Flag) -> str:
    return f"Its heir: {row.heir}." if row.heir else ""
