"""Which model a server was given: its files' names, sizes and times, and the small ones' hashes.

A trillion parameters are not hashed: weights are told apart by size and time, configurations
and code by their content.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from eagleops.remote.wheel_record import hash_file

Facts = Dict[str, Any]

MAX_FILES = 2000
# Configurations, and with --trust-remote-code the model's own program.
HASHED = (".json", ".py", ".jinja", ".txt", ".yaml")
HASHED_BYTES = 4 * 1024 * 1024
CONFIG = "config.json"

TARGET_FLAGS = ("--model-path", "--model")
DRAFT_FLAGS = (
    "--speculative-draft-model-path",
    "--speculative-draft-model",
    "--speculative-model",
)
# A value in JSON that names the drafter under "model".
DRAFT_JSON_FLAGS = ("--speculative-config",)


class Model(NamedTuple):
    """A model as a command names it: a folder, a file, or a repository of the Hugging Face hub."""

    role: str
    name: str


def named_in(argv: Sequence[str], model: Optional[str] = None) -> List[Model]:
    """The target and the drafter that a server's command names.

    Args:
        argv: The command.
        model: The target, where it is known from elsewhere.
    """
    flags = dict(_flags(argv))
    target = model or next((flags[flag] for flag in TARGET_FLAGS if flag in flags), None)
    draft = next((flags[flag] for flag in DRAFT_FLAGS if flag in flags), None)
    for flag in DRAFT_JSON_FLAGS:
        if draft is None and flag in flags:
            draft = _model_in_json(flags[flag])
    pairs = (("target", target), ("draft", draft))
    return [Model(role, name) for role, name in pairs if name]


def identity(model: Model, variables: Mapping[str, str], cwd: Optional[str] = None) -> Facts:
    """What tells this model from another.

    Args:
        model: Which.
        variables: The server's environment: it says where the hub's cache is.
        cwd: The server's working directory, for a relative path.

    Returns:
        ``role``, ``name``, ``path``, ``revision`` (of a hub repository), ``config_sha256``,
        ``files`` (``path``, ``bytes``, ``mtime_s``, ``sha256`` of small ones), ``bytes``, and
        as ``problem`` why not.
    """
    facts: Facts = {
        "role": model.role,
        "name": model.name,
        "path": None,
        "revision": None,
        "config_sha256": None,
        "bytes": None,
        "files": [],
        "problem": None,
    }
    path = os.path.join(cwd or "/", os.path.expanduser(model.name))
    if not os.path.exists(path):
        snapshot = _cached(model.name, variables)
        if snapshot is None:
            return dict(facts, problem="no such folder, and not in the hub's cache")
        path, facts["revision"] = snapshot, os.path.basename(snapshot)
    facts["path"] = path
    try:
        files = [_file(path, name) for name in sorted(_names(path))[:MAX_FILES]]
    except OSError as error:
        return dict(facts, problem=error.strerror)
    hashes = {file["path"]: file.get("sha256") for file in files}
    facts.update(
        files=files, bytes=sum(f["bytes"] for f in files), config_sha256=hashes.get(CONFIG)
    )
    return facts


def _flags(argv: Sequence[str]) -> Iterator["tuple[str, str]"]:
    for at, argument in enumerate(argv):
        flag, equals, value = argument.partition("=")
        if not flag.startswith("--"):
            continue
        flag = flag.replace("_", "-")
        if equals:
            yield flag, value
        elif at + 1 < len(argv) and not argv[at + 1].startswith("--"):
            yield flag, argv[at + 1]


def _model_in_json(text: str) -> Optional[str]:
    try:
        value = json.loads(text).get("model")
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, str) else None


def _cached(name: str, variables: Mapping[str, str]) -> Optional[str]:
    """The snapshot's folder in the hub's cache: its name is the revision."""
    home = variables.get("HF_HOME") or os.path.join(
        variables.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    hub = variables.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    folder = os.path.join(hub, "models--" + name.replace("/", "--"))
    try:
        with open(os.path.join(folder, "refs", "main"), encoding="ascii") as file:
            revision = file.read(256).strip()
        snapshot = os.path.join(folder, "snapshots", revision)
        return snapshot if os.path.isdir(snapshot) else None
    except (OSError, ValueError):
        return None


def _names(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield ""
        return
    with os.scandir(path) as entries:
        yield from (entry.name for entry in entries if entry.is_file())


def _file(folder: str, name: str) -> Facts:
    path = os.path.join(folder, name) if name else folder
    found = os.stat(path)
    fact: Facts = {
        "path": name or os.path.basename(path),
        "bytes": found.st_size,
        "mtime_s": int(found.st_mtime),
    }
    if fact["path"].endswith(HASHED) and found.st_size <= HASHED_BYTES:
        fact["sha256"] = hash_file(path, "sha256").hexdigest()
    return fact
