"""What a launch would start, written for a person to read."""

from __future__ import annotations

import shlex

from eagleops.engines.registry import engine
from eagleops.profile import Profile
from eagleops.remote import redact


def describe(profile: Profile, python: str, *, nccl_log: bool = True) -> str:
    """The variables and the command of a launch, one to a line, in a shell's spelling.

    Only to be read: values of secret names are replaced, and no shell takes part in a launch.

    Args:
        profile: What would start.
        python: The interpreter that the engine is installed for.
        nccl_log: As in :meth:`~eagleops.engines.base.Engine.environment`.

    Raises:
        ProfileError: if the profile describes no server that can be launched.
    """
    adapter = engine(profile.engine)
    env = redact.environment(adapter.environment(profile, nccl_log=nccl_log))
    lines = [f"{name}={shlex.quote(value)}" for name, value in env.items()]
    lines += [f"{name}=<from the target>" for name in profile.inherit if name not in env]
    argv = redact.argv(adapter.command(profile, python))
    return " \\\n".join([*lines, *_flags_on_lines(argv)])


def _flags_on_lines(argv: list[str]) -> list[str]:
    lines: list[list[str]] = [[]]
    for word in argv:
        if word.startswith("--") and lines[-1]:
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return ["    " * (n > 0) + " ".join(words) for n, words in enumerate(lines)]
