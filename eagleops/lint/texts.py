"""Rules on values as texts: secrets, and what only a shell would have understood."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from eagleops.engines import engine
from eagleops.errors import ProfileError
from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject
from eagleops.profile import SecretReference
from eagleops.remote import redact

_EXPANSION = re.compile(r"\$\{?[A-Za-z_]\w*\}?|\$\(|`")
_PLACEHOLDER = re.compile(
    r"<[a-z][\w -]*>|\bCHANGEME\b|\bTODO\b|^/path/to/|^your[-_ ]", re.IGNORECASE
)
# eagleops puts the server's state folder in its place.
_OURS = re.compile(r"\{state_dir\}")


@rule("not-launchable", "error")
def launchable(subject: Subject) -> Iterator[Told]:
    """The engine can make a command and an environment of the profile."""
    profile = subject.profile
    try:
        adapter = engine(profile.engine)
        adapter.command(profile, "python3")
        adapter.environment(profile)
        adapter.expected_workers(profile)
    except ProfileError as error:
        key = error.where.partition(f"profiles.{profile.name}.")[2]
        yield profile.place(key), error.problem, error.way_out


@rule("secret-literal", "warning")
def literal(subject: Subject) -> Iterator[Told]:
    """A secret stands nowhere in the inventory, but where its value is."""
    for name, value in subject.profile.env.items():
        if _is_literal(name, value):
            message = f"the value of {name} stands in the inventory: whoever reads it has it"
            fix = f"Write {name}: {{secret: env:{name}}} (file:PATH, cmd:COMMAND), or inherit it."
            yield subject.env_place(name), message, fix
    for name, given in subject.profile.args.items():
        if isinstance(given, str) and _is_literal(name, given):
            message = f"the value of {name} stands in the inventory: whoever reads it has it"
            variable = name.upper().replace("-", "_")
            fix = f"Write {name}: {{secret: env:{variable}}}."
            yield subject.profile.place(f"args.{name}"), message, fix


def _is_literal(name: str, value: str) -> bool:
    if isinstance(value, SecretReference) or not _may_name_a_secret(name):
        return False
    return redact.is_secret(name, value)


@lru_cache(maxsize=4096)
def _may_name_a_secret(name: str) -> bool:
    return redact.is_secret(name)


@rule("secret-argv", "note")
def in_argv(subject: Subject) -> Iterator[Told]:
    """A secret does not stand in a command line, which every user of the machine can read."""
    for name, value in subject.profile.args.items():
        if isinstance(value, SecretReference) or _is_literal(name, str(value)):
            message = f"{name} stands in the server's command line, which ps shows to every user"
            better = "VLLM_API_KEY" if subject.profile.engine == "vllm" else ""
            fix = f"Set {better} instead." if better and name == "api-key" else ""
            yield subject.profile.place(f"args.{name}"), message, fix


@rule("shell-syntax", "warning")
def shell(subject: Subject) -> Iterator[Told]:
    """No value waits for a shell: none reads it, so ``$HOME`` stays ``$HOME``."""
    for key, value in subject.texts:
        where = subject.profile.place(key)
        if value.startswith("~"):
            message = f"no shell reads {_shown(subject, key, value)!r}: ~ stays ~"
            yield where, message, "Write the whole path."
        elif (found := _EXPANSION.search(value)) and not value.startswith("{"):
            # A variable alone is what was meant, and no secret; within one, it may be a part of it.
            whole = found[0] == value or _shown(subject, key, value) == value
            piece = found[0] if whole else redact.REDACTED
            yield where, f"no shell reads it: {piece!r} stays as it is", "Write what it stands for."


@rule("stray-characters", "warning")
def stray(subject: Subject) -> Iterator[Told]:
    """No value has quotes around it, blanks at its ends, or a placeholder in it."""
    for key, value in subject.texts:
        where = subject.profile.place(key)
        if value != value.strip():
            shown = _shown(subject, key, value)
            yield where, f"{shown!r} begins or ends with a blank, which is handed on", ""
        elif len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            shown = _shown(subject, key, value)
            message = f"the quotes of {shown} are part of the value: the server gets them too"
            yield where, message, f"Write {value[1:-1]}." if shown == value else "Leave them out."
        elif found := _PLACEHOLDER.search(value):
            yield where, f"{found[0]!r} looks like a placeholder", "Write the real value."


def _shown(subject: Subject, key: str, value: str) -> str:
    """``value`` as a finding may show it: a secret's is replaced, by its name or by its place."""
    field, _, name = key.partition(".")
    if field == "command":
        words = subject.profile.command
        pairs = zip(words, redact.argv(words), strict=True)
        return next((shown for word, shown in pairs if value == word != shown), value)
    return redact.value(name, value)
