"""Named values in a profile's texts: ``${port_base}``. Names alone, no code.

``values:`` holds them, inherited name by name like ``env:``. ``$${`` is a plain ``${``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.profile.profile import Profile
from eagleops.profile.secret import SecretReference
from eagleops.remote import redact

_NAMED = re.compile(r"\$(\$\{)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def filled(profile: Profile) -> Profile:
    """``profile`` with its named values in their places.

    Of those that a secret is made of the names alone stay: they are in their place, and every
    other place would show them.

    Raises:
        ProfileError: for a name that has no value.
    """
    args = {name: _filled(profile, f"args.{name}", value) for name, value in profile.args.items()}
    env = {name: _filled(profile, f"env.{name}", value) for name, value in profile.env.items()}
    return attrs.evolve(
        profile,
        model=_filled(profile, "model", profile.model),
        python=_filled(profile, "python", profile.python),
        cwd=_filled(profile, "cwd", profile.cwd),
        command=tuple(_filled(profile, "command", word) for word in profile.command),
        args=args,
        env=env,
        values={**profile.values, **dict.fromkeys(_in_secrets(profile), redact.REDACTED)},
    )


def _in_secrets(profile: Profile) -> Iterator[str]:
    """The named values that a secret is made of."""
    for name, value in (*profile.env.items(), *profile.args.items()):
        if isinstance(value, str) and redact.is_secret(name, value):
            yield from (found[2] for found in _NAMED.finditer(value) if found[2])


def _filled(profile: Profile, key: str, value: Any) -> Any:
    if isinstance(value, SecretReference):
        return value
    if isinstance(value, str):
        return _NAMED.sub(lambda found: _value(profile, key, found), value)
    if isinstance(value, Mapping):
        return {name: _filled(profile, key, item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_filled(profile, key, item) for item in value)
    return value


def _value(profile: Profile, key: str, found: re.Match[str]) -> str:
    if found[1]:
        return found[1]
    name = found[2]
    if name in profile.values:
        return str(profile.values[name])
    known = f"There are {', '.join(profile.values)}." if profile.values else "There are none."
    raise profile.error(
        f"no value is named {name}",
        f"Write it under `values:`. {known} A text that is meant so: $${{{name}}}.",
        key=key,
    )
