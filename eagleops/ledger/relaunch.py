"""A recorded run as an order to start it again: the same argv, the same environment."""

from __future__ import annotations

import secrets as random_tokens
from collections.abc import Iterable, Mapping
from typing import Any

from eagleops.errors import UsageError
from eagleops.ledger.recipe import BASE
from eagleops.ledger.run import Run
from eagleops.profile import Profile
from eagleops.remote.redact import REDACTED

STATE_DIR = "{state_dir}"
# What the recorded launch was asked for beside its command, and is asked for again.
KEPT = ("engine", "model", "port", "profile", "expected_workers", "readiness", "nccl_log")


def relaunch_request(
    run: Run,
    *,
    supplied: Mapping[str, str],
    require_free_mib: Any,
    profile: Profile | None = None,
    same_host: bool = True,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What ``spawn`` is sent, and the secrets whose values are not known.

    Args:
        run: What was recorded.
        supplied: The variables that the machine itself gives to each server.
        require_free_mib: As ``spawn`` takes it.
        profile: A profile that may hold the values of secrets: no ledger does.
        same_host: Whether HOME, PATH and the rest of the base are the recorded ones; on
            another host they are that host's, except for what the profile had set.

    Raises:
        UsageError: if the run's command was not recorded.
    """
    spec = run.part("spec")
    if not isinstance(spec, Mapping) or not spec.get("argv"):
        raise UsageError(
            problem=f"run {run.id} has no command on record: it cannot be reproduced",
            way_out="Choose another: eagleops runs.",
        )
    recorded = dict(spec.get("env") or {})
    expected = dict(spec.get("expected") or {})
    hosts_own = set() if same_host else BASE - set(expected)
    env, inherit, missing = _environment(recorded, {*hosts_own, *supplied}, spec, profile)
    argv, unknown = _argv(spec["argv"], profile)
    # What the record left out is left out of the new one too.
    secret_words = [n for n, word in enumerate(spec["argv"]) if REDACTED in word]
    state_dir = (run.part("log") or {}).get("state_dir")
    if state_dir and "NCCL_DEBUG_FILE" in env:
        env["NCCL_DEBUG_FILE"] = env["NCCL_DEBUG_FILE"].replace(state_dir, STATE_DIR)
    at_home = spec.get("cwd") == recorded.get("HOME")
    request = {
        **{name: spec.get(name) for name in KEPT},
        "launch_id": random_tokens.token_hex(16),
        "argv": argv,
        "secret_words": secret_words,
        "secret_env": [name for name in env if REDACTED in recorded[name]],
        # The base that a profile took away is taken away again.
        "env": {**dict.fromkeys(BASE - set(recorded)), **supplied, **env},
        "inherit": inherit,
        "cwd": None if at_home else spec.get("cwd"),
        "expected": {name: env.get(name, value) for name, value in expected.items()},
        "require_free_mib": require_free_mib,
    }
    return request, tuple(sorted({*missing, *unknown}))


def _environment(
    recorded: Mapping[str, str],
    others: Iterable[str],
    spec: Mapping[str, Any],
    profile: Profile | None,
) -> tuple[dict[str, str], list[str], list[str]]:
    """The recorded variables, the names to read from the target, and those without a value."""
    left_out = {"EAGLEOPS_SERVER", "EAGLEOPS_LAUNCH_ID", *others}
    env: dict[str, str] = {}
    inherit, missing = [], []
    for name, value in recorded.items():
        if name in left_out:
            continue
        if REDACTED not in value:
            env[name] = value
        elif profile is not None and name in profile.env:
            env[name] = profile.env[name]
        elif name in (spec.get("inherit") or ()) or (profile and name in profile.inherit):
            inherit.append(name)
        else:
            missing.append(name)
    return env, inherit, missing


def _argv(recorded: Iterable[str], profile: Profile | None) -> tuple[list[str], list[str]]:
    """The recorded command with its secrets, and the flags whose values are not known."""
    argv: list[str] = []
    missing = []
    for word in recorded:
        name, equals, value = word.partition("=")
        if REDACTED not in word:
            argv.append(word)
            continue
        flag = name if equals and value == REDACTED else (argv or [""])[-1]
        given = None if profile is None else profile.args.get(flag.lstrip("-"))
        if not isinstance(given, str):
            missing.append(flag)
        argv.append(f"{name}={given}" if equals else str(given))
    return argv, missing
