"""What only the whole file shows of its suites: names that name nothing, or the same twice.

It is read from the tree, and so is told together with what is wrong in single values.
"""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.inventory.document import Items, Node, Scalar, Table
from eagleops.inventory.places import entries, misnamed, no_such, written
from eagleops.inventory.problems import Problem, nearest
from eagleops.inventory.readers import truth
from eagleops.nights.catalogue import DOCTOR, DOCTOR_KIND, KINDS
from eagleops.nights.finding import SEPARATOR

_NAMES = frozenset({"text", "number"})


def suite_problems(tree: Table) -> Iterator[Problem]:
    """Everything that is wrong between the suites of a document and the rest of it."""
    files: dict[str, Scalar] = {}
    for name, suite in entries(tree, "nightly").items():
        keys = written(suite)
        yield from misnamed(name, suite)
        for command, place in entries(suite, "commands").items():
            yield from misnamed(command, place)
        yield from _hosts(suite, tree)
        yield from _profiles(suite, tree)
        yield from _checks(suite)
        file = keys.get("prometheus")
        if isinstance(file, Scalar):
            other = files.setdefault(file.text, file)
            if other is not file:
                problem = f"{other.key} in line {other.line} is that file: one undoes the other"
                yield Problem(file.line, file.key, problem, "Write a file for each suite.")


def _hosts(suite: Node, tree: Table) -> Iterator[Problem]:
    targets = (*entries(tree, "hosts"), *entries(tree, "containers"))
    listed = written(suite).get("hosts")
    named = list(_values(listed))
    is_empty = listed is None or (isinstance(listed, Items) and not listed.items)
    if is_empty and "host" not in entries(tree, "defaults"):
        problem = "it names no hosts, and defaults name none"
        yield Problem(suite.line, suite.key, problem, f"Write hosts: [{', '.join(targets[:1])}].")
    known = (*targets, *entries(tree, "groups"))
    for host in named:
        if host.text not in known:
            yield no_such(host, "host, container or group", host.text, known)
    yield from _twice(named)


def _profiles(suite: Node, tree: Table) -> Iterator[Problem]:
    profiles = entries(tree, "profiles")
    concrete = [name for name, entry in profiles.items() if not _is_abstract(entry)]
    named = list(_values(written(suite).get("profiles"), "profile"))
    for profile in named:
        if profile.text not in profiles:
            yield no_such(profile, "profile", profile.text, concrete)
        elif profile.text not in concrete:
            problem = f"profile {profile.text} is abstract: nothing to launch"
            yield Problem(profile.line, profile.key, problem)
    yield from _twice(named)


def _checks(suite: Node) -> Iterator[Problem]:
    """Whole names such as ``speed:baseline``: what is named has to be there."""
    profiles = [one.text for one in _values(written(suite).get("profiles"), "profile")]
    checks = written(suite).get("checks")
    for name, where in checks.items() if isinstance(checks, Table) else ():
        kind, colon, subject = name.partition(SEPARATOR)
        if kind not in KINDS or not colon:
            continue
        if KINDS[kind].of == "command":
            problem = "what a command's fault is stands with the command"
            way_out = f"Write severity: at commands.{subject or 'NAME'}."
            yield Problem(where.line, where.key, problem, way_out)
        elif kind != DOCTOR_KIND and KINDS[kind].of == "host":
            problem = f"{kind} is one check for a host: nothing stands behind a colon"
            yield Problem(where.line, where.key, problem, f"Write {kind}.")
        else:
            known = DOCTOR if kind == DOCTOR_KIND else profiles
            what = "check of doctor" if kind == DOCTOR_KIND else "profile of this suite"
            if subject not in known:
                problem = f"{subject!r} is no {what}"
                yield Problem(where.line, where.key, problem, nearest(subject, known, "There are"))


def _values(node: Node | None, key: str = "") -> Iterator[Scalar]:
    """The names in a list, or one name alone; of a mapping in it, its ``key``."""
    for one in node if isinstance(node, Items) else (node,):
        value = one.get(key) if isinstance(one, Table) else one
        if isinstance(value, Scalar) and value.kind in _NAMES:
            yield value


def _is_abstract(profile: Node) -> bool:
    value = written(profile).get("abstract")
    return isinstance(value, Scalar) and value.kind == "boolean" and truth(value.text)


def _twice(named: list[Scalar]) -> Iterator[Problem]:
    seen: set[str] = set()
    for one in named:
        if one.text in seen:
            yield Problem(one.line, one.key, f"{one.text} stands in the suite twice")
        seen.add(one.text)
