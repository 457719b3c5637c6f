"""Inheritance: from entries to a whole profile."""

from __future__ import annotations

from collections.abc import Mapping

from eagleops.errors import ProfileError
from eagleops.profile.entry import ProfileEntry
from eagleops.profile.profile import Profile, overlaid


def lineage(name: str, entries: Mapping[str, ProfileEntry]) -> tuple[str, ...]:
    """The chain that makes ``name``: every parent before its children, ``name`` last.

    A profile that several others extend stands once, before all of them: what they change of
    it holds, whichever is named first.

    Raises:
        ProfileError: for an unknown name, or profiles that extend one another in a circle.
    """
    order: dict[str, None] = {}
    _visit(name, entries, order, ())
    return tuple(order)


def resolve(name: str, entries: Mapping[str, ProfileEntry]) -> Profile:
    """The profile ``name`` with everything that it inherits.

    Raises:
        ProfileError: as :func:`lineage`.
    """
    profile = Profile(name=name)
    for ancestor in lineage(name, entries):
        profile = overlaid(profile, entries[ancestor])
    return profile


def _visit(
    name: str,
    entries: Mapping[str, ProfileEntry],
    order: dict[str, None],
    below: tuple[str, ...],
) -> None:
    if name in below:
        circle = (*below[below.index(name) :], name)
        raise ProfileError(
            problem=f"profiles extend one another in a circle: {' -> '.join(circle)}",
            where=f"profiles.{name}",
            profile=name,
        )
    if name not in entries:
        raise ProfileError(
            problem=f"there is no profile {name}",
            where=f"profiles.{below[-1]}.extends" if below else "",
            profile=name,
        )
    if name not in order:
        for parent in entries[name].extends:
            _visit(parent, entries, order, (*below, name))
        order[name] = None
