"""Environment files: NAME=VALUE in lines, as Docker and systemd have them. No code in them."""

from __future__ import annotations

from pathlib import Path

import attrs

from eagleops.inventory.problems import Problem, Wrong
from eagleops.profile import ProfileEntry
from eagleops.profile.values import VARIABLE_NAME


def with_env_files(entry: ProfileEntry, folder: Path) -> ProfileEntry:
    """``entry`` with the variables of its files; what it says itself comes over them.

    Args:
        entry: As it is written.
        folder: What relative paths are relative to.

    Raises:
        Wrong: for a file that cannot be read, or a line that sets nothing.
    """
    env: dict[str, str] = {}
    lines: dict[str, int | str] = {}
    for path in entry.env_file or ():
        file = folder / _at_home(entry, path)
        for number, name, value in _variables(entry, file):
            env[name] = value
            lines[f"env.{name}"] = f"{file}:{number}"
    return attrs.evolve(entry, env={**env, **entry.env}, lines={**lines, **entry.lines})


def _at_home(entry: ProfileEntry, path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        problem = f"{path} cannot be read: nobody's home is named so here"
        raise _wrong(entry, problem) from None


def _wrong(entry: ProfileEntry, problem: str, way_out: str = "") -> Wrong:
    line = entry.lines.get("env_file", 0)
    at = line if isinstance(line, int) else 0
    return Wrong(Problem(at, f"profiles.{entry.name}.env_file", problem, way_out))


def _variables(entry: ProfileEntry, file: Path) -> list[tuple[int, str, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = (getattr(error, "strerror", None) or "it is no UTF-8").lower()
        raise _wrong(entry, f"{file} cannot be read: {why}") from None
    found = []
    for number, written in enumerate(text.splitlines(), 1):
        stripped = written.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.removeprefix("export ").lstrip().partition("=")
        if not equals or not VARIABLE_NAME.match(name):
            # The line itself is told by its number: what stands in such a file is secret, mostly.
            got = f"the name {name!r}" if equals else "a line without ="
            problem = f"{file}:{number}: expected NAME=VALUE, got {got}"
            blank = "No blank stands before =." if name != name.rstrip() else ""
            raise _wrong(entry, problem, blank)
        found.append((number, name, _unquoted(value.strip())))
    return found


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
