"""Runs as lines of JSON: a ledger for another machine, or for eyes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import attrs

from eagleops.errors import UsageError
from eagleops.ledger.run import PARTS, Fact, Header, Run

# The lines' own version, beside the database's.
FORMAT = 1
_HEADER_FIELDS = frozenset(field.name for field in attrs.fields(Header)) - {"id"}


@attrs.frozen
class Imported:
    """What an import did.

    Attributes:
        added: Runs that were not known.
        extended: Known runs of which more is known now.
        known: Runs that brought nothing new.
    """

    added: int
    extended: int
    known: int


def write(file: str | Path | IO[str], runs: Iterable[Run]) -> int:
    """Writes a line for each run, and returns how many.

    Raises:
        UsageError: if the file cannot be written.
    """
    if not isinstance(file, (str, Path)):
        return _write_lines(file, runs)
    path = Path(file).expanduser()
    partial = path.with_name(f"{path.name}.partial")
    try:
        with _private(partial) as stream:
            count = _write_lines(stream, runs)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        raise UsageError(
            problem=f"the runs cannot be written: {error.strerror}", where=str(path)
        ) from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    return count


def _private(path: Path) -> IO[str]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "w", encoding="ascii")


def _write_lines(stream: IO[str], runs: Iterable[Run]) -> int:
    count = 0
    for run in runs:
        stream.write(line(run) + "\n")
        count += 1
    return count


def line(run: Run) -> str:
    """A run as one line of JSON, in ASCII."""
    fields = attrs.asdict(run.header)
    del fields["id"]
    facts = [attrs.asdict(fact, recurse=False) for fact in run.facts]
    return json.dumps({"eagleops_run": FORMAT, **fields, "facts": facts}, separators=(",", ":"))


def read(file: str | Path | IO[str]) -> Iterator[Run]:
    """The runs of a file that :func:`write` wrote.

    Raises:
        UsageError: for a line that is no run, with its number.
    """
    if not isinstance(file, (str, Path)):
        yield from _read_lines(file, getattr(file, "name", "standard input"))
        return
    try:
        with Path(file).expanduser().open(encoding="utf-8", errors="replace") as stream:
            yield from _read_lines(stream, str(file))
    except OSError as error:
        raise UsageError(
            problem=f"the runs cannot be read: {error.strerror}", where=str(file)
        ) from error


def _read_lines(stream: IO[str], where: str) -> Iterator[Run]:
    for number, text in enumerate(stream, 1):
        if text.strip():
            try:
                yield parse(text)
            except (ValueError, TypeError, RecursionError) as error:
                raise UsageError(
                    problem=f"no run: {error}",
                    where=f"{where}:{number}",
                    way_out="Nothing was taken in. Each line has to be one that `export` wrote.",
                ) from error


def parse(text: str) -> Run:
    """The run that a line holds.

    Raises:
        ValueError: if it is none, or one of a later version of eagleops.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or "eagleops_run" not in content:
        raise ValueError("not a line of a ledger")
    if content.pop("eagleops_run") != FORMAT:
        raise ValueError("written by a later version of eagleops")
    facts = [_fact(fields) for fields in content.pop("facts", [])]
    unknown = set(content) - _HEADER_FIELDS
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    return Run(_header(content), tuple(facts))


def _header(fields: Mapping[str, Any]) -> Header:
    for name, value in fields.items():
        kinds = (int, float, type(None)) if name in _NUMBERS else (str,)
        optional = name == "model" and value is None
        if not isinstance(value, kinds) and not optional:
            raise ValueError(f"{name}: {value!r}")
    try:
        return Header(**fields)
    except TypeError as error:
        raise ValueError(str(error)) from None


_NUMBERS = {"ready_s", "tok_s", "accept_length"}


def _fact(fields: Any) -> Fact:
    names = {"part", "body", "recorded_utc", "uuid"}
    if not isinstance(fields, dict) or set(fields) != names:
        raise ValueError("a fact has to have part, body, recorded_utc and uuid")
    if fields["part"] not in PARTS:
        raise ValueError(f"unknown part {fields['part']!r}")
    odd = [name for name in ("recorded_utc", "uuid") if not isinstance(fields[name], str)]
    if odd:
        raise ValueError(f"a fact's {odd[0]} is {fields[odd[0]]!r}")
    return Fact(**fields)
