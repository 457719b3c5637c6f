"""Secrets by reference: their values, fetched where eagleops runs, at the last moment."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import attrs

from eagleops.errors import ProfileError
from eagleops.inventory.suite import WebhookEntry
from eagleops.profile import Profile, SecretReference
from eagleops.remote import redact

# A password manager may ask its user; a command that hangs must not hang a launch for ever.
LIMIT_S = 120.0
# A shorter value is as likely a word of its own: leaving it out everywhere would garble the rest.
SHORTEST = 8
# The last part of a path that is no word of a person's.
LONG = 16
AUTHORIZING = {"authorization", "proxy-authorization", "cookie"}


def revealed(value: Any) -> Any:
    """``value`` with the secret's value in place of each reference in it.

    Raises:
        ProfileError: if a value cannot be had; the message holds none.
    """
    if isinstance(value, SecretReference):
        return _value(value)
    if isinstance(value, Mapping):
        return {name: revealed(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [revealed(item) for item in value]
    return value


def by_reference(values: Mapping[str, Any]) -> list[str]:
    """The names of those that are secrets by reference, whatever their names say."""
    return [name for name, value in values.items() if isinstance(value, SecretReference)]


def with_values(profile: Profile) -> Profile:
    """``profile`` with the values of its secrets: to be launched, and never to be shown.

    Raises:
        ProfileError: if a value cannot be had.
    """
    return attrs.evolve(profile, env=revealed(profile.env), args=revealed(profile.args))


def secret_values(profile: Profile) -> tuple[str, ...]:
    """The values of a profile's references; without those that cannot be had."""
    values = []
    for item in (*profile.env.values(), *profile.args.values()):
        if isinstance(item, SecretReference):
            try:
                values.append(_value(item))
            except ProfileError:
                continue
    return tuple(values)


def webhook_secrets(webhook: WebhookEntry) -> tuple[str, ...]:
    """What of a webhook must not be told; without what cannot be had.

    Its URL, and its path alone: that is the password. Of headers, what stands there by reference
    or under a secret's name, and of ``Bearer abc`` its last word too.
    """
    values = []
    for name, item in (("", webhook.url), *webhook.headers.items()):
        try:
            value = revealed(item)
        except ProfileError:
            continue
        if not name:
            values += [value, *_path_of(value)]
        elif isinstance(item, SecretReference) or _names_a_secret(name):
            values += [value, *value.split()[-1:]]
    return tuple(dict.fromkeys(value for value in values if len(value) >= SHORTEST))


def _path_of(url: str) -> tuple[str, ...]:
    """What of a URL may be its password: all from the path on, and a last part that is long."""
    split = urlsplit(url)
    path = urlunsplit(("", "", *split[2:]))
    last = split.path.rpartition("/")[2]
    return path, path.lstrip("/"), *([last] if len(last) >= LONG else [])


def _names_a_secret(header: str) -> bool:
    return header.lower() in AUTHORIZING or redact.is_secret(header)


# One launch asks for a value several times; a password manager should be asked once.
@lru_cache(maxsize=64)
def _value(reference: SecretReference) -> str:
    value = _READERS[reference.kind](reference.place)
    if not value or "\0" in value:
        raise _refusal(reference, "it is empty" if not value else "it holds a NUL byte")
    return value


def _from_env(name: str) -> str:
    if name not in os.environ:
        raise _refusal(
            SecretReference(f"env:{name}"),
            "the variable is not set where eagleops runs",
            f"export {name}=... there first.",
        )
    return os.environ[name]


def _from_file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip("\r\n")
    except RuntimeError:
        why = "nobody's home is named so here"
        raise _refusal(SecretReference(f"file:{path}"), f"the file cannot be read: {why}") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        raise _refusal(SecretReference(f"file:{path}"), f"the file cannot be read: {why}") from None


def _from_command(command: str) -> str:
    reference = SecretReference(f"cmd:{command}")
    try:
        argv = shlex.split(command)
        done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
        return done.stdout.decode("utf-8").strip("\r\n")
    except subprocess.CalledProcessError as error:
        raise _refusal(reference, f"the command ended with status {error.returncode}") from None
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        raise _refusal(reference, f"the command gave nothing: {type(error).__name__}") from None


def _refusal(reference: SecretReference, problem: str, way_out: str = "") -> ProfileError:
    return ProfileError(problem=problem, where=f"secret {str.__str__(reference)}", way_out=way_out)


_READERS: Mapping[str, Callable[[str], str]] = {
    "env": _from_env,
    "file": _from_file,
    "cmd": _from_command,
}
