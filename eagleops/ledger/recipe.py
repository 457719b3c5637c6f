"""A run written out as a profile of hosts.yaml that is its own recipe.

The profile says everything itself and extends nothing: what its parents become does not
change it. Beside it, as comments, stands what no profile can bring back: versions, patched
files, the model's identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.errors import UsageError
from eagleops.ledger.aspects import OF_ONE_LAUNCH, lines_of
from eagleops.ledger.lines import Line, rank
from eagleops.ledger.run import Run
from eagleops.remote.redact import REDACTED
from eagleops.written import comment, handed_on, scalar

# What an environment has without anybody's asking.
BASE = {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG"}
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
    lines = [*_told(run), "profiles:", f"  {scalar(name)}:"]
    for field, value in fields.items():
        if isinstance(value, Mapping) and field != "sim":
            lines.append(f"    {field}:")
            lines += [f"      {scalar(key)}: {handed_on(item)}" for key, item in value.items()]
        else:
            lines.append(f"    {field}: {scalar(value)}")
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
    yield comment(
        f"Run {header.id} ({header.uuid}): {header.profile} on {header.host}, "
        f"{header.created_utc}, {header.outcome}{figure}."
    )
    yield comment("What it ran with, and what this profile cannot bring back:")
    parts = ("packages", "models", "libraries", "gpus", "machine")
    lines = [x for x in lines_of(run, parts, with_times=True) if x.section in BESIDE]
    for line in sorted(lines, key=lambda line: rank(line.section, line.what)):
        yield comment(f"  {line.section}: {line.what}: {line.value}")
    yield from (comment(f"Secret, to be set on the target: {name}") for name in _secrets(run))


def _secrets(run: Run) -> list[str]:
    spec = run.part("spec")
    lines: Iterator[Line] = lines_of(run, ("spec",), with_times=False)
    found = {line.what for line in lines if _is_secret(line.value)}
    return sorted(found) if isinstance(spec, Mapping) else []
