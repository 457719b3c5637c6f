"""Rules on NCCL's variables, one at a time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from eagleops.knowledge.nccl import Cost, Variable, table, version_number, words_of
from eagleops.knowledge.values import Fault
from eagleops.lint.finding import Severity
from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject

_COSTS: dict[Cost, tuple[str, Severity]] = {
    "fatal": ("the server dies when its workers connect", "error"),
    "ignored": ("NCCL passes over it without a word", "error"),
    "changed": ("another value takes its place without a word", "error"),
    "taken": ("NCCL takes it as it is", "warning"),
}


def _told(subject: Subject, kind: str) -> Iterator[Told]:
    for known, fault in subject.nccl_faults:
        if fault.kind == kind:
            yield _as_told(subject, known, fault)


def _as_told(subject: Subject, known: Variable, fault: Fault) -> Told:
    cost, severity = _COSTS[fault.cost]
    if fault.cost == "fatal":
        cost += f" (up to {_before(known.fatal_since)} it was passed over in silence)"
    message = f"{known.name}: {fault.text}; {cost}"
    return subject.env_place(known.name), message, fault.fix, severity


def _before(version: str) -> str:
    major, minor = version_number(version)[:2]
    return f"{major}.{minor - 1}"


@rule("nccl-number", "error")
def number(subject: Subject) -> Iterator[Told]:
    """A value of a variable that holds a number is one, as NCCL reads numbers."""
    yield from _told(subject, "number")


@rule("nccl-range", "error")
def allowed_range(subject: Subject) -> Iterator[Told]:
    """A number is one of those that NCCL takes, and not clamped."""
    yield from _told(subject, "range")


@rule("nccl-power-of-two", "warning")
def power_of_two(subject: Subject) -> Iterator[Told]:
    """A buffer's size is a power of two, and large enough to be of use."""
    yield from _told(subject, "power-of-two")


@rule("nccl-word", "error")
def word(subject: Subject) -> Iterator[Told]:
    """The words of NCCL_ALGO, NCCL_PROTO and the like are known, their lists well formed."""
    yield from _told(subject, "word")


@rule("nccl-level", "error")
def level(subject: Subject) -> Iterator[Told]:
    """A distance such as NCCL_P2P_LEVEL is one of NCCL's words, in upper case."""
    yield from _told(subject, "level")


@rule("nccl-empty", "error")
def empty(subject: Subject) -> Iterator[Told]:
    """A variable that is set is set to something: NCCL takes an empty one for none."""
    yield from _told(subject, "empty")


@rule("nccl-unknown", "error")
def unknown(subject: Subject) -> Iterator[Told]:
    """A name that begins with NCCL_ is one that NCCL reads: it says nothing of others."""
    known = table()
    for name in subject.profile.env:
        if not name.startswith("NCCL_") or name in known.names:
            continue
        if name in known.foreign:
            message = f"{name} is not NCCL's: PyTorch, a build or an image reads that name"
            yield subject.env_place(name), message, "", "note"
            continue
        near = difflib.get_close_matches(name, known.names, n=1, cutoff=0.8)
        severity: Severity = "error" if near else "warning"
        message = f"NCCL up to 2.32 reads no {name}: it passes over it without a word"
        yield subject.env_place(name), message, f"Did you mean {near[0]}?" if near else "", severity


@rule("nccl-removed", "error")
def removed(subject: Subject) -> Iterator[Told]:
    """A variable is still read by the NCCL of today."""
    for known, _ in subject.nccl:
        if known.removed:
            message = f"NCCL reads no {known.name} since {known.removed}"
            fix = f"See {known.heir}." if known.heir else "Take it out."
            yield subject.env_place(known.name), message, fix


@rule("nccl-deprecated", "note")
def deprecated(subject: Subject) -> Iterator[Told]:
    """A variable has no newer name."""
    for known, _ in subject.nccl:
        if known.deprecated and known.heir:
            message = f"{known.name} is deprecated since NCCL {known.deprecated}"
            also = f" ({known.note})" if known.note and not known.note[0].isdigit() else ""
            yield subject.env_place(known.name), message + also, f"Its heir is {known.heir}."


@rule("nccl-version", "warning")
def too_new_or_old(subject: Subject) -> Iterator[Told]:
    """A variable, and each of its words, is known to the NCCL that is installed."""
    installed = subject.facts.nccl_version
    for known, value in subject.nccl:
        where = subject.env_place(known.name)
        if installed and known.since and version_number(installed) < version_number(known.since):
            message = f"{known.name} came with NCCL {known.since}, and {installed} is installed"
            yield where, message, "", "error"
        for each in words_of(value) if known.versions else ():
            span = {w.lower(): v for w, v in known.versions.items()}.get(each.lower())
            if span is None:
                continue
            if len(span) > 1:
                message = f"{known.name}: {each} went after NCCL {span[1]}"
                yield where, message, "CollnetChain and CollnetDirect took its place."
            elif installed and version_number(installed) < version_number(span[0]):
                message = f"{known.name}: {each} came with NCCL {span[0]}, {installed} is installed"
                yield where, message, "", "error"
