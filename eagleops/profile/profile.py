"""A profile with everything that it inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.errors import ProfileError
from eagleops.profile.entry import MERGED, REPLACED, ProfileEntry
from eagleops.profile.values import (
    ArgValue,
    arg_values,
    env_values,
    frozen_mapping,
    gpu_indices,
    port_number,
    redacted,
    shown,
    shown_argv,
    strings,
)
from eagleops.remote import redact


@attrs.frozen(kw_only=True)
class Profile:
    """A server to launch.

    Attributes:
        name: As in hosts.yaml; the server's name where none is given.
        engine: ``sglang``, ``vllm`` or ``command``; empty if no profile of the chain names one.
        model: Path or repository of the model.
        port: Where it serves HTTP, 1 to 65535.
        python: The interpreter that the engine is installed for; None for the target's.
        args: Flags without their dashes, in order: a text (a number as it was written), True
            for a bare flag, a tuple for several values, a mapping for one value in JSON.
        env: The variables that the profile sets.
        unset: Variables that a profile of the chain gave as null: eagleops adds none of them.
        inherit: Names of variables that are read on the target when the server starts.
        command: The argv of engine ``command``.
        cwd: The server's working directory; None for the user's home.
        gpus: Indices of the GPUs that it may use; None for all of them.
        sim: How the embedded box behaves when it runs this profile.
        values: Named values, which are in their places already.
        origin: File and line of the profile itself.
        sources: Which profile each value came from, by dotted key: ``env.NCCL_PROTO``.
        places: File and line of each value, by the same keys, where they are known.
    """

    name: str
    engine: str = ""
    model: str | None = None
    port: int | None = attrs.field(default=None, converter=port_number)
    python: str | None = None
    args: Mapping[str, ArgValue] = attrs.field(factory=dict, converter=arg_values, repr=shown)
    env: Mapping[str, str] = attrs.field(factory=dict, converter=env_values, repr=shown)
    unset: frozenset[str] = frozenset()
    inherit: tuple[str, ...] = attrs.field(default=(), converter=strings)
    command: tuple[str, ...] = attrs.field(default=(), converter=strings, repr=shown_argv)
    cwd: str | None = None
    gpus: tuple[int, ...] | None = attrs.field(default=None, converter=gpu_indices)
    sim: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping)
    values: Mapping[str, str] = attrs.field(factory=dict, converter=frozen_mapping, repr=shown)
    origin: str = ""
    sources: Mapping[str, str] = attrs.field(factory=dict, converter=frozen_mapping, repr=False)
    places: Mapping[str, str] = attrs.field(
        factory=dict, converter=frozen_mapping, repr=False, eq=False
    )

    @property
    def where(self) -> str:
        """The profile as messages name it, for example ``hosts.yaml:31: profiles.baseline``."""
        lead = f"{self.origin}: " if self.origin else ""
        return f"{lead}profiles.{self.name}"

    def place(self, key: str = "") -> str:
        """Where ``key`` stands, as findings name it: ``hosts.yaml:35: profiles.nccl.env.X``.

        That is the profile that says it, which may be one that this one extends.
        """
        if not key:
            return self.where
        source = self.sources.get(key, self.name)
        lead = self.places.get(key) or self.origin
        return f"{lead}: profiles.{source}.{key}" if lead else f"profiles.{source}.{key}"

    def with_(self, *, name: str | None = None, **changes: Any) -> Profile:
        """A new profile: this one, changed as a profile that extends it would change it.

        Mappings are merged name by name, and None removes::

            baseline.with_(args={"tp-size": 4}, env={"NCCL_ALGO": None}, port=8001)

        Args:
            name: The new profile's; this one's without it.
            changes: Any field of :class:`~eagleops.profile.ProfileEntry` that holds a value.

        Raises:
            ProfileError: for a name that no profile has, or a value that cannot be launched.
        """
        known = {*MERGED, *REPLACED}
        if unknown := sorted(set(changes) - known):
            raise self.error(
                f"a profile has no {unknown[0]}", f"It has {', '.join(sorted(known))}."
            )
        try:
            entry = ProfileEntry(
                name=name or self.name,
                origin=self.origin,
                removed=frozenset(key for key, value in changes.items() if value is None),
                **{key: value for key, value in changes.items() if value is not None},
            )
        except ProfileError as wrong:
            raise self.error(wrong.problem, wrong.way_out, wrong.where) from None
        return overlaid(self, entry)

    def error(self, problem: str, way_out: str = "", key: str = "") -> ProfileError:
        """An error about this profile, or about ``key`` in it (dotted, as in :attr:`sources`)."""
        source = self.sources.get(key, self.name)
        return ProfileError(
            problem=problem + (f" (it comes from profile {source})" if source != self.name else ""),
            where=f"{self.where}.{key}" if key else self.where,
            way_out=way_out,
            profile=self.name,
        )

    def to_dict(self) -> dict[str, Any]:
        """The profile as JSON, the values of secret names replaced."""
        return {
            "name": self.name,
            "engine": self.engine,
            "model": self.model,
            "port": self.port,
            "python": self.python,
            "args": redacted(self.args),
            "env": redacted(self.env),
            "unset": sorted(self.unset),
            "inherit": list(self.inherit),
            "command": redact.argv(self.command),
            "cwd": self.cwd,
            "gpus": None if self.gpus is None else list(self.gpus),
            "sim": dict(self.sim),
            "values": redacted(self.values),
            "origin": self.origin,
            "sources": self._keys_by_source(),
        }

    def _keys_by_source(self) -> dict[str, list[str]]:
        # Keyed by the profile: a profile's name under `args.api-key` would read as a secret's
        # value, and be left out wherever else it stands.
        keys: dict[str, list[str]] = {}
        for key, source in self.sources.items():
            keys.setdefault(source, []).append(key)
        return keys


def overlaid(profile: Profile, entry: ProfileEntry) -> Profile:
    """``profile`` with what ``entry`` says over it, under the entry's name."""
    values: dict[str, Any] = {}
    sources = _without(profile.sources, entry.removed)
    places = _without(profile.places, entry.removed)
    file = entry.origin.rpartition(":")[0]
    for field in REPLACED:
        if field in entry.removed:
            values[field] = attrs.fields_dict(Profile)[field].default
        elif (given := getattr(entry, field)) is not None:
            values[field] = given
            sources[field] = entry.name
            places |= _place(entry, file, field)
    for field in MERGED:
        given = getattr(entry, field)
        before = {} if field in entry.removed else getattr(profile, field)
        values[field] = dict(_merged(before, given))
        for name, value in given.items():
            key = f"{field}.{name}"
            if value is None:
                sources.pop(key, None)
                places.pop(key, None)
            else:
                sources[key] = entry.name
                places.pop(key, None)
                places |= _place(entry, file, key)
    nulled = {variable for variable, value in entry.env.items() if value is None}
    unset = (profile.unset | nulled) - set(values["env"])
    return attrs.evolve(
        profile,
        name=entry.name,
        origin=entry.origin,
        unset=unset,
        sources=sources,
        places=places,
        **values,
    )


def _without(keyed: Mapping[str, str], removed: frozenset[str]) -> dict[str, str]:
    return {key: text for key, text in keyed.items() if key.partition(".")[0] not in removed}


def _place(entry: ProfileEntry, file: str, key: str) -> dict[str, str]:
    line = entry.lines.get(key)
    if isinstance(line, str):
        return {key: line}
    return {key: f"{file}:{line}"} if line and file else {}


def _merged(before: Mapping[str, Any], over: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    # A flag that is given anew keeps its place, so that a child changes as little as it says.
    for key, value in {**before, **over}.items():
        if value is not None:
            yield key, value
