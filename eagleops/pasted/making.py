"""From a program that a pasted command starts to a profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.engines import engine
from eagleops.engines.flags import dashed
from eagleops.errors import ProfileError
from eagleops.pasted.server_command import (
    PORTS,
    Flags,
    ServerCommand,
    flags_of,
    model_of,
    recognised,
)
from eagleops.pasted.surroundings import Report, Started
from eagleops.profile import Profile, SecretReference
from eagleops.profile.values import FLAG_NAME, VARIABLE_NAME, passable
from eagleops.remote import redact


@attrs.frozen
class Made:
    """A profile, and what it is held against.

    Attributes:
        profile: As hosts.yaml will have it.
        argv: What the pasted command started.
        env: The variables that it set.
    """

    profile: Profile
    argv: tuple[str, ...]
    env: Mapping[str, str]


def made(started: Started, report: Report, name: str | None = None) -> Made:
    """Makes a profile of what was started."""
    command = recognised(started.argv)
    env = _env(started, report)
    if command is None:
        profile = _any_program(started, env, name, report)
    else:
        profile = _of_engine(command, started, env, name, report)
    return Made(profile, started.argv, started.env)


def _env(started: Started, report: Report) -> dict[str, Any]:
    env: dict[str, Any] = {}
    for variable, value in started.env.items():
        if not VARIABLE_NAME.match(variable) or not passable(value):
            report.tell(
                "odd-variable", f"{variable[:40]!r} cannot be taken over", severity="warning"
            )
        elif variable in {"HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD"}:
            report.tell(
                "base-variable", f"{variable} is the login's own: left out", severity="note"
            )
        elif redact.is_secret(variable, value):
            env[variable] = _secret(variable, report)
        else:
            env[variable] = value
    return env


def _secret(variable: str, report: Report, what: str = "") -> SecretReference:
    report.tell(
        "secret-in-command",
        # In quotes: `--flag word` would be read as a flag with a secret behind it.
        f"the value of `{what or variable}` stood in the pasted command: whoever saw it has it; "
        "it is left out here",
        f"Export {variable} where eagleops runs; better, make a new one.",
        "warning",
    )
    return SecretReference(f"env:{variable}")


def _any_program(
    started: Started, env: dict[str, Any], name: str | None, report: Report
) -> Profile:
    report.tell(
        "engine-unknown",
        f"{started.argv[0]} is no engine that eagleops knows: its workers and its readiness are "
        "not checked",
        severity="note",
    )
    command = list(started.argv)
    secrets = [n for n, word in enumerate(redact.argv(command)) if redact.REDACTED in word]
    for n in secrets:
        flag = command[n].partition("=")[0] if "=" in command[n] else command[n - 1]
        variable = re.sub(r"\W+", "_", flag.lstrip("-")).upper()
        _secret(variable, report, flag)
        command[n] = f"{flag}=REPLACE_ME" if "=" in command[n] else "REPLACE_ME"
    named = started.argv[0].rpartition("/")[2]
    return Profile(
        name=name or _slug(named),
        engine="command",
        command=tuple(command),
        env=env,
        cwd=_folder(started, report),
    )


def _of_engine(
    command: ServerCommand,
    started: Started,
    env: dict[str, Any],
    name: str | None,
    report: Report,
) -> Profile:
    if command.respelled:
        report.tell("respelled", command.respelled, severity="note")
    flags = flags_of(command.engine, command.flags, report)
    if flags.joined:
        told = (
            "values joined to their flags by = stand in words of their own: the engine reads both"
        )
        report.tell("respelled", f"{told} alike", severity="note")
    model = model_of(command.engine, flags)
    args = _args(flags, report)
    port = _port(command.engine, args, report)
    extra = flags.positional[1:] if command.engine == "vllm" else flags.positional
    if extra:
        message = f"no flag takes {' '.join(extra)[:60]!r}: the engine ends at its start"
        report.tell("stray-word", message, "It is left out.")
    profile = Profile(
        name=name or _named(command.engine, model, args),
        engine=command.engine,
        model=model,
        port=port,
        python=_python(command, started, report),
        args=args,
        env=env,
        cwd=_folder(started, report),
    )
    return _in_order(profile)


def _args(flags: Flags, report: Report) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for key, value in flags.args.items():
        if not FLAG_NAME.match(key):
            report.tell("stray-word", f"{key!r} is no flag's name", "It is left out.")
        elif isinstance(value, str) and redact.is_secret(key, value):
            args[key] = _secret(key.upper().replace("-", "_"), report, f"--{key}")
        else:
            args[key] = value
    return args


def _port(name: str, args: dict[str, Any], report: Report) -> int:
    given = args.get("port")
    if isinstance(given, str) and given.isdigit() and 0 < int(given) < 1 << 16:
        return int(given)
    if given is not None:
        args.pop("port")
        message = "--port has no value" if given is True else f"port {given!r} is none"
        report.tell("port", message, f"{PORTS[name]} is taken, its default.")
        return PORTS[name]
    message = f"no port is given: {PORTS[name]} is the engine's default, and is written out"
    report.tell("port", message, severity="note")
    return PORTS[name]


def _python(command: ServerCommand, started: Started, report: Report) -> str | None:
    python = command.python
    if started.python and "/" not in python:
        python = started.python
    if python.startswith("/"):
        return python
    if python and ("/" in python or "~" in python):
        if started.cwd.startswith("/") and not python.startswith("~"):
            return f"{started.cwd}/{python.removeprefix('./')}"
        report.tell(
            "python",
            f"{python} is an interpreter whose whole path is not known",
            "Write `python:` in the profile; without it the machine's own is taken.",
        )
        return None
    return python or None


def _folder(started: Started, report: Report) -> str | None:
    if not started.cwd or started.cwd.startswith("/"):
        return started.cwd or None
    message = f"the folder {started.cwd} is relative to one that is not known"
    report.tell("cwd", message, "Write `cwd:` in the profile, from / on.", "warning")
    return None


def _in_order(profile: Profile) -> Profile:
    """The profile with model and port among its args only where its order asks for that."""
    spelled = [key for key in ("model-path", "model", "port") if key in profile.args]
    by_place = {"model"} if profile.engine == "vllm" else set()
    wanted = [dashed(name) for name in profile.args if name not in by_place]
    for kept in ([], spelled[-1:], spelled[:1]):
        left = {k: v for k, v in profile.args.items() if k not in spelled or k in kept}
        candidate = attrs.evolve(profile, args=left)
        if _order(candidate, wanted) == wanted:
            return candidate
    return profile


def _order(profile: Profile, wanted: list[str]) -> list[str]:
    """The flags of its command, as far as they are among ``wanted``."""
    try:
        command = engine(profile.engine).command(profile, "python3")
    except ProfileError:
        return []
    names = [word.partition("=")[0] for word in command]
    return [name for name in names if name in wanted]


def _named(name: str, model: str | None, args: Mapping[str, Any]) -> str:
    base = (model or name).rstrip("/").rpartition("/")[2]
    algorithm = args.get("speculative-algorithm")
    steps = args.get("speculative-num-steps")
    tail = f"-{algorithm}" if isinstance(algorithm, str) else ""
    tail += f"-{steps}step" if tail and isinstance(steps, str) else ""
    return _slug(f"{base}{tail}".lower())


def _slug(text: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:60]
    return slug if slug and slug[0].isalnum() else "imported"
