"""A grid of profiles: one profile, with some of its values varied. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from eagleops.engines.flags import given
from eagleops.errors import UsageError
from eagleops.profile import Profile

_KEY = re.compile(r"(args|env|sim)\.([^=]+)\Z")
_NOT_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?\Z")


@attrs.frozen
class Axis:
    """One value that is varied.

    Attributes:
        key: As in hosts.yaml: ``args.speculative-num-steps``.
        values: What it takes; None where it is taken away.
    """

    key: str
    values: tuple[str | bool | None, ...]

    @property
    def short(self) -> str:
        """The key without its mapping."""
        return self.key.partition(".")[2]

    @classmethod
    def parse(cls, text: str) -> Axis:
        """Reads ``KEY=V1,V2``; ``null`` takes the value away, ``true`` is a bare flag.

        Raises:
            UsageError: if it is none.
        """
        key, equals, values = text.partition("=")
        told = tuple(map(_value, values.split(",")))
        if not equals or not _KEY.match(key) or not values or len(set(told)) < len(told):
            raise UsageError(
                problem=f"KEY=VALUE,VALUE with different values is expected, got {text!r}",
                where="--vary",
                way_out="For example: --vary args.speculative-num-steps=1,2,3 "
                "--vary env.NCCL_PROTO=LL,Simple.",
            )
        return cls(key, told)


@attrs.frozen
class Point:
    """One profile of a grid.

    Attributes:
        values: Of each axis, by its key.
    """

    profile: Profile
    values: Mapping[str, str | bool | None]


def grid(base: Profile, axes: Sequence[Axis]) -> tuple[Point, ...]:
    """Every combination of the axes' values, as profiles that extend ``base``.

    With SGLang's top-k 1 the number of draft tokens follows from the steps (steps + 1: the
    engine sets it so whatever is given), so it goes along with them. Combinations that come to
    the same server are one point.

    Raises:
        UsageError: without an axis, or with two of one key.
        ProfileError: for a value that a profile cannot hold.
    """
    keys = [axis.key for axis in axes]
    if not keys or len(set(keys)) < len(keys):
        raise UsageError(
            problem="a sweep needs at least one --vary, and each key once", where="--vary"
        )
    points: dict[str, Point] = {}
    for values in itertools.product(*(axis.values for axis in axes)):
        chosen = dict(zip(keys, values, strict=True))
        profile = base.with_(name=_name(base.name, axes, values), **_changes(base, chosen))
        same = {k: v for k, v in profile.to_dict().items() if k not in {"name", "sources"}}
        points.setdefault(str(same), Point(profile, chosen))
    return tuple(points.values())


def overlay(base: Profile, point: Point) -> dict[str, Any]:
    """What a profile that extends ``base`` has to say to be the point's."""
    return _changes(base, point.values)


def _changes(base: Profile, chosen: Mapping[str, str | bool | None]) -> dict[str, dict[str, Any]]:
    changes: dict[str, dict[str, Any]] = {}
    for key, value in chosen.items():
        field, _, name = key.partition(".")
        number = field == "sim" and isinstance(value, str) and _NUMBER.match(value)
        changes.setdefault(field, {})[name] = float(value) if number and value else value
    flags = changes.get("args", {})
    steps = flags.get("speculative-num-steps")
    top_k = flags.get("speculative-eagle-topk", given(base, "speculative-eagle-topk"))
    drafts = "speculative-num-draft-tokens"
    if isinstance(steps, str) and steps.isdecimal() and top_k == "1" and drafts not in flags:
        flags[drafts] = str(int(steps) + 1)
    return changes


def _value(text: str) -> str | bool | None:
    return {"null": None, "true": True}.get(text.strip(), text.strip())


def _name(base: str, axes: Sequence[Axis], values: Iterable[str | bool | None]) -> str:
    told = (f"{axis.short}-{_word(value)}" for axis, value in zip(axes, values, strict=True))
    return _NOT_NAMES.sub("-", ".".join((base, *told)))


def _word(value: str | bool | None) -> str:
    return "none" if value is None else "on" if value is True else str(value)
