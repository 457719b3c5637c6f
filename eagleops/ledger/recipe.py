"""A run written out as a profile of hosts.yaml that is its own recipe.

The profile says everything itself and extends nothing: what its parents become does not
change it. Beside it, as comments, stands what no profile can bring back: versions, patched
files, the model's identity.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.errors import UsageError
from eagleops.ledger.aspects import OF_ONE_LAUNCH, lines_of
from eagleops.ledger.lines import Line, rank
from eagleops.ledger.run import Run
from eagleops.remote.redact import REDACTED

# A word that YAML can only take for itself; everything else stands in quotes.
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./+-]*\Z")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")
_NOT_TEXT = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
# What an environment has without anybody's asking.
BASE = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG"}
BASIC_PLANE = 0xFFFF
# What stands beside a recipe: these sections of a run.
BESIDE = {"patches", "model", "versions"}
FIELDS = ("engine", "model", "port", "python", "cwd", "gpus")


def as_profile(run: Run, name: str | None = None) -> str:
    """The run as the text of a hosts.yaml that holds this one profile.

    Args:
        run: A run whose command was recorded.
        name: The profile's; without it one of the run's number.

    Raises:
        UsageError: if neither its profile nor its command was recorded.
    """
    name = name or f"{run.header.profile}-run-{run.id or run.header.uuid[:8]}"
    fields = _fields(run)
    lines = [*_told(run), "profiles:", f"  {_scalar(name)}:"]
    for field, value in fields.items():
        if isinstance(value, Mapping) and field != "sim":
            lines.append(f"    {field}:")
            lines += [f"      {_scalar(key)}: {_as_written(item)}" for key, item in value.items()]
        else:
            lines.append(f"    {field}: {_scalar(value)}")
    return "\n".join(lines) + "\n"


def _fields(run: Run) -> dict[str, Any]:
    profile, spec = run.part("profile_source"), run.part("spec")
    if not isinstance(profile, Mapping):
        if not isinstance(spec, Mapping) or not spec.get("argv"):
            raise UsageError(
                problem=f"run {run.id} has neither its profile nor its command on record",
                way_out="Choose another: eagleops runs.",
            )
        return _command(spec)
    fields = {field: profile.get(field) for field in FIELDS}
    fields["python"] = fields["python"] or _interpreter(spec)
    env = dict(profile.get("env") or {})
    kept = {key: value for key, value in env.items() if not _is_secret(value)}
    # A secret is in no ledger; inherited, it comes from the target where it is set.
    inherit = dict.fromkeys([*(profile.get("inherit") or ()), *(set(env) - set(kept))])
    fields |= {
        "args": {k: v for k, v in (profile.get("args") or {}).items() if not _is_secret(v)},
        "env": kept | dict.fromkeys(profile.get("unset") or ()),
        "inherit": sorted(inherit),
        "command": list(profile.get("command") or ()),
        "sim": dict(profile.get("sim") or {}),
    }
    return {field: value for field, value in fields.items() if value not in (None, "", [], {})}


def _command(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A profile of engine ``command``: the very argv, and the variables beyond the base."""
    env = {
        name: value
        for name, value in (spec.get("env") or {}).items()
        if name not in BASE | OF_ONE_LAUNCH and not _is_secret(value)
    }
    fields = {"engine": "command", "command": list(spec["argv"]), "env": env}
    return {**fields, **({"cwd": spec["cwd"]} if spec.get("cwd") else {})}


def _interpreter(spec: Any) -> str | None:
    argv = spec.get("argv") if isinstance(spec, Mapping) else None
    return argv[0] if argv and argv[1:2] == ["-m"] else None


def _is_secret(value: Any) -> bool:
    return isinstance(value, str) and REDACTED in value


def _told(run: Run) -> Iterator[str]:
    header = run.header
    figure = "" if header.tok_s is None else f", {header.tok_s:.1f} tok/s"
    yield _comment(
        f"Run {header.id} ({header.uuid}): {header.profile} on {header.host}, "
        f"{header.created_utc}, {header.outcome}{figure}."
    )
    yield _comment("What it ran with, and what this profile cannot bring back:")
    parts = ("packages", "models", "libraries", "gpus", "machine")
    lines = [x for x in lines_of(run, parts, with_times=True) if x.section in BESIDE]
    for line in sorted(lines, key=lambda line: rank(line.section, line.what)):
        yield _comment(f"  {line.section}: {line.what}: {line.value}")
    yield from (_comment(f"Secret, to be set on the target: {name}") for name in _secrets(run))


def _secrets(run: Run) -> list[str]:
    spec = run.part("spec")
    lines: Iterator[Line] = lines_of(run, ("spec",), with_times=False)
    found = {line.what for line in lines if _is_secret(line.value)}
    return sorted(found) if isinstance(spec, Mapping) else []


def _comment(text: str) -> str:
    # Whatever a fact holds, it does not get out of its comment.
    return "# " + "".join(c if c.isprintable() else "?" for c in text)


def _as_written(value: Any) -> str:
    """A flag's or a variable's value: a number is a text there, and needs no quotes."""
    return value if isinstance(value, str) and _NUMBER.match(value) else _scalar(value)


def _scalar(value: Any) -> str:
    """A value in YAML's flow style: JSON, but a plain word stays plain."""
    if isinstance(value, str):
        plain = _PLAIN.match(value) and value.lower() not in _NOT_TEXT
        return value if plain else _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(k)}: {_scalar(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """A text in double quotes: JSON's escapes, but for what JSON writes as two halves."""
    escaped = (f"\\U{ord(c):08X}" if ord(c) > BASIC_PLANE else json.dumps(c)[1:-1] for c in text)
    return f'"{"".join(escaped)}"'
