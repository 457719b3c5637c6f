"""A profile's args: from names and values to argv, and what they say of the server."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from eagleops.profile import ArgValue, Profile

_NEGATIVE_NUMBER = re.compile(r"-\d+\Z|-\d*\.\d+\Z")


def dashed(name: str) -> str:
    """A flag as it stands in argv: ``tp-size`` becomes ``--tp-size``, ``-tp`` stays."""
    return name if name.startswith("-") else f"--{name}"


def rendered(
    args: Mapping[str, ArgValue], *, repeated: Collection[str] = ()
) -> Iterator[tuple[str, ...]]:
    """Each flag with its values, in order.

    Args:
        args: As in :class:`~eagleops.profile.Profile`.
        repeated: Flags that are given once for each of their values (argparse's ``append``);
            every other one is followed by all of them (``nargs``).
    """
    for name, value in args.items():
        flag = dashed(name)
        if value is True:
            yield (flag,)
        elif isinstance(value, tuple) and name in repeated:
            yield from (_pair(flag, _text(item)) for item in value)
        elif isinstance(value, tuple):
            yield (flag, *(_text(item) for item in value))
        else:
            yield _pair(flag, _text(value))


def with_port(
    profile: Profile, port: int, *, without: Collection[str] = (), repeated: Collection[str] = ()
) -> Iterator[str]:
    """The profile's flags in order, and the port: beside ``--host``, which it goes with, else last.

    Args:
        profile: Whose args.
        port: The profile's.
        without: Flags that stand elsewhere in the command.
        repeated: As in :func:`rendered`.

    Raises:
        ProfileError: if args name another port.
    """
    stated = agreed(profile, "port", str(port), "port")
    args = {name: value for name, value in profile.args.items() if name not in without}
    for words in rendered(args, repeated=repeated):
        yield from words
        if words[0] == "--host" and not stated:
            stated = True
            yield from ("--port", str(port))
    if not stated:
        yield from ("--port", str(port))


def given(profile: Profile, *spellings: str) -> ArgValue | None:
    """The value of a flag that has several names; None where it is not given.

    Underscores count as dashes: both engines' parsers take them for the same.

    Raises:
        ProfileError: if two spellings are given and differ: which one wins is the engine's
            secret.
    """
    found = [
        (name, value)
        for name, value in profile.args.items()
        if name.lstrip("-").replace("_", "-") in spellings
    ]
    for name, value in found[1:]:
        if value != found[0][1]:
            raise profile.error(
                f"contradicts args.{found[0][0]}: both are names of one flag, "
                f"with {_told(found[0][1])} and {_told(value)}",
                "Keep one of them; null removes an inherited one.",
                key=f"args.{name}",
            )
    return found[0][1] if found else None


def count(profile: Profile, *spellings: str, default: int = 1) -> int:
    """A flag that holds a number of something, for example of GPUs.

    Raises:
        ProfileError: if it is no number from 0 up, or given twice with different values.
    """
    value = given(profile, *spellings)
    if value is None:
        return default
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,9}", value):
        name = next(n for n in profile.args if n.lstrip("-").replace("_", "-") in spellings)
        raise profile.error(f"expected a number, got {_told(value)}", key=f"args.{name}")
    return int(value)


def agreed(profile: Profile, field: str, value: str, *spellings: str) -> bool:
    """Whether args give too what the profile's own ``field`` says.

    Raises:
        ProfileError: if they say something else.
    """
    also = given(profile, *spellings)
    if also is None:
        return False
    if also != value:
        name = next(n for n in profile.args if n.lstrip("-").replace("_", "-") in spellings)
        raise profile.error(
            f"contradicts {field}: {_told(also)} is not {_told(value)}",
            f"Say it once, as `{field}:`, and take args.{name} out.",
            key=f"args.{name}",
        )
    return True


def required(profile: Profile, field: str, *spellings: str, example: str) -> Any:
    """The profile's ``field``, which no launch can do without.

    Raises:
        ProfileError: if it has none.
    """
    value = getattr(profile, field)
    if value is not None:
        return value
    also = given(profile, *spellings)
    raise profile.error(
        f"engine {profile.engine} needs a {field}, and the profile has none",
        f"Write `{field}: {_plain(also) if also is not None else example}` in it"
        + (", not among its args." if also is not None else "."),
    )


def _pair(flag: str, value: str) -> tuple[str, ...]:
    # argparse takes a word that begins with a dash for the next flag, unless it is a number.
    if value.startswith("-") and not _NEGATIVE_NUMBER.match(value):
        return (f"{flag}={value}",)
    return (flag, value)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(dict(value), separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _plain(value: ArgValue) -> str:
    return "true" if value is True else _text(value)


def _told(value: ArgValue) -> str:
    return "a bare flag" if value is True else _text(value)
