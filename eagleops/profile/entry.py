"""A profile as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.profile.values import (
    ArgValue,
    arg_values,
    env_values,
    frozen_mapping,
    gpu_indices,
    port_number,
    shown,
    shown_argv,
    strings,
)

# The fields that are put together name by name, and those that are replaced whole.
MERGED = ("args", "env", "sim", "values")
REPLACED = ("engine", "model", "port", "python", "inherit", "command", "cwd", "gpus")


@attrs.frozen(kw_only=True)
class ProfileEntry:
    """What a profile says itself, nothing of its parents; None where it is silent.

    Attributes:
        name: As in hosts.yaml.
        origin: File and line, for example ``hosts.yaml:31``; empty where none is known.
        abstract: Only to be extended, never launched.
        extends: Its parents. Of two that say something different, the later one wins.
        args: Flags without their dashes; None removes an inherited one.
        env: Variables; None removes an inherited one, and keeps eagleops from adding it.
        env_file: Files whose variables come under ``env``, relative to hosts.yaml; they are read
            with it.
        values: Named values for ``${name}`` in the other texts.
        removed: The names of fields that were given as null.
        lines: Where each key stands in its file, 1-based, by dotted key: ``env.NCCL_PROTO``; file
            and line as a text where that is another file.

    Raises:
        ProfileError: for a value that no server can be launched with; its ``where`` is the key.
    """

    name: str
    origin: str = ""
    abstract: bool = False
    extends: tuple[str, ...] = attrs.field(default=(), converter=strings)
    engine: str | None = None
    model: str | None = None
    port: int | None = attrs.field(default=None, converter=port_number)
    python: str | None = None
    args: Mapping[str, ArgValue | None] = attrs.field(
        factory=dict, converter=arg_values, repr=shown
    )
    env: Mapping[str, str | None] = attrs.field(factory=dict, converter=env_values, repr=shown)
    inherit: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(strings)
    )
    command: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(strings), repr=shown_argv
    )
    cwd: str | None = None
    gpus: tuple[int, ...] | None = attrs.field(default=None, converter=gpu_indices)
    sim: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen_mapping)
    env_file: tuple[str, ...] | None = attrs.field(
        default=None, converter=attrs.converters.optional(strings)
    )
    values: Mapping[str, str | None] = attrs.field(
        factory=dict, converter=frozen_mapping, repr=shown
    )
    removed: frozenset[str] = frozenset()
    lines: Mapping[str, int | str] = attrs.field(
        factory=dict, converter=frozen_mapping, repr=False, eq=False
    )
