"""The git checkout that an editable install runs from: its commit, and what differs from it.

A repository's own configuration can name programs that git runs while it merely looks. Hooks
and the file system monitor are turned off, no lock is taken, and submodules are not entered.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, NamedTuple

from eagleops.remote import command
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.wheel_record import described

Facts = Dict[str, Any]

LIMIT_S = 30.0
MAX_LISTED = 500
_QUIETLY = (
    "--no-optional-locks",
    "--no-pager",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
)
_RENAMES = frozenset("RC")


class Change(NamedTuple):
    """A file that is not as the commit has it; ``state`` is git's two letters."""

    state: str
    path: str


def look(context: Context, folder: str) -> Facts:
    """The checkout that ``folder`` lies in.

    Returns:
        ``folder`` (its top), ``commit``, ``described`` (the nearest tag), ``dirty`` (each
        ``path``, ``state``, and where there is a file its ``sha256``, ``bytes``, ``mtime_s``),
        ``dirty_count``, and as ``problem`` why something of it is not known.
    """
    facts: Facts = {
        "folder": folder,
        "commit": None,
        "described": None,
        "dirty": [],
        "dirty_count": None,
        "problem": None,
    }
    git = command.find(context, "git")
    if git is None:
        return dict(facts, problem="no git on PATH: neither commit nor changes are known")
    try:
        top = _git(context, git, folder, "rev-parse", "--show-toplevel", "HEAD").splitlines()
        facts.update(folder=top[0], commit=top[1])
        facts["described"] = _described(context, git, top[0])
        status = _git(
            context,
            git,
            top[0],
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        )
    except Failure as failure:
        return dict(facts, problem=failure.message)
    changes = parse_status(status)
    facts["dirty_count"] = len(changes)
    facts["dirty"] = [_fact(top[0], change) for change in changes[:MAX_LISTED]]
    return facts


def parse_status(text: str) -> List[Change]:
    """``git status --porcelain=v1 -z``, by path; a rename stands under its new name."""
    changes = []
    fields = iter(text.split("\0"))
    for field in fields:
        state, path = field[:2].strip(), field[3:]
        if path:
            changes.append(Change(state, path))
            if field[0] in _RENAMES:
                next(fields, None)
    return sorted(changes, key=lambda change: change.path)


def explain(stderr: str, folder: str) -> str:
    """What git's refusal means, and the way out."""
    first = next((line for line in stderr.splitlines() if line.strip()), "no output")
    if "dubious ownership" in stderr:
        return (
            "git does not read {0}: it belongs to another user. On that machine, as the user "
            "that asks: git config --global --add safe.directory {0}".format(folder)
        )
    if "not a git repository" in stderr:
        return "{} is no git checkout".format(folder)
    return "git: {}".format(re.sub(r"\A(fatal|error): ", "", first.strip()))


def _described(context: Context, git: str, folder: str) -> object:
    try:
        return _git(context, git, folder, "describe", "--tags", "--always").strip()
    except Failure:
        return None


def _git(context: Context, git: str, folder: str, *arguments: str) -> str:
    finished = command.run(context, [git, *_QUIETLY, "-C", folder, *arguments], LIMIT_S)
    if finished.exit_status != 0:
        raise Failure("git_refused", explain(finished.stderr, folder))
    return finished.stdout


def _fact(top: str, change: Change) -> Facts:
    fact: Facts = {"path": change.path, "state": change.state}
    path = os.path.join(top, change.path)
    try:
        if os.path.isfile(path):
            fact.update(described(path))
    except OSError as error:
        fact["problem"] = error.strerror
    return fact
