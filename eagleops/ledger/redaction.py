"""Secrets are left out before anything reaches the ledger's file.

A name decides what is a secret (:mod:`eagleops.remote.redact`). Its value is then left out
wherever else in the same run it stands: in a log's last lines, in another variable, in a URL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eagleops.remote import redact

# A shorter value is as likely a word of its own: leaving it out everywhere would garble the rest.
SHORTEST = 8
# Lists under these names are commands: a flag's value is the argument after it.
COMMANDS = {"argv", "command", "launch_command", "cmdline"}
# Under a variable's name, what witnesses saw of it.
SEEN = {"initial", "live", "effective", "expected", "value", "before", "after"}

_TOKEN = re.compile("token", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")


def without_secrets(bodies: Mapping[str, Any], known: Iterable[str] = ()) -> dict[str, Any]:
    """The parts of one run as JSON that holds no secret.

    Args:
        bodies: The parts' bodies by name. A number that JSON lacks (NaN, infinity) becomes null.
        known: Values that are secrets whatever name they stand under.
    """
    values = {value for body in bodies.values() for value in _secrets(body)} | set(known)
    values.discard(redact.REDACTED)
    # The longest first: one may be the beginning of another.
    spoken = sorted((v for v in values if len(v) >= SHORTEST), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, spoken))) if spoken else None
    return {name: _plain(body, "", pattern) for name, body in bodies.items()}


def _secrets(content: Any, name: str = "") -> Iterator[str]:
    """The values that stand under a secret's name, anywhere in ``content``."""
    if isinstance(content, Mapping):
        for key, item in content.items():
            if isinstance(item, Mapping) and _is_secret_variable(str(key)):
                yield from (seen for word in SEEN if isinstance(seen := item.get(word), str))
            yield from _secrets(item, str(key))
    elif _is_command(name, content):
        yield from _secret_arguments(content)
    elif isinstance(content, (list, tuple)):
        for item in content:
            yield from _secrets(item, name)
    elif isinstance(content, str) and redact.is_secret(name, content):
        yield content


def _secret_arguments(arguments: Sequence[str]) -> Iterator[str]:
    for given, shown in zip(arguments, redact.argv(arguments), strict=True):
        if shown == redact.REDACTED:
            yield given
        elif shown.endswith("=" + redact.REDACTED):
            yield given.partition("=")[2]


def _plain(content: Any, name: str, pattern: re.Pattern[str] | None) -> Any:
    if isinstance(content, Mapping):
        return {
            str(key): _without_seen(str(key), _plain(item, str(key), pattern))
            for key, item in content.items()
        }
    if _is_command(name, content):
        return [_masked(argument, pattern) for argument in redact.argv(content)]
    if isinstance(content, (list, tuple)):
        return [_plain(item, name, pattern) for item in content]
    if isinstance(content, str):
        return _masked(redact.value(name, content), pattern)
    if isinstance(content, float) and not math.isfinite(content):
        return None
    # A number is no access token, whatever a benchmark calls its throughputs.
    return redact.json_value(content, _TOKEN.sub("", name))


def _without_seen(name: str, content: Any) -> Any:
    if not (isinstance(content, dict) and _is_secret_variable(name)):
        return content
    return {
        key: redact.REDACTED if key in SEEN and isinstance(item, str) else item
        for key, item in content.items()
    }


def _masked(text: str, pattern: re.Pattern[str] | None) -> str:
    return text if pattern is None else pattern.sub(redact.REDACTED, text)


def _is_command(name: str, content: Any) -> bool:
    return (
        name in COMMANDS
        and isinstance(content, (list, tuple))
        and all(isinstance(argument, str) for argument in content)
    )


def _is_secret_variable(name: str) -> bool:
    return _VARIABLE.match(name) is not None and redact.is_secret(name)
