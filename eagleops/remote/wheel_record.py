"""Whether an installed package is still what its wheel held: its RECORD against the disk.

RECORD lists each file with its hash and size (the wheel specification,
packaging.python.org/specifications/recording-installed-packages). Byte code has no hash: it
is made on the spot.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
from typing import Any, Dict, Generator, Iterable, Iterator, List, NamedTuple, Optional, Set

from eagleops.remote.context import Context
from eagleops.remote.distributions import Distribution

Facts = Dict[str, Any]

# A kernel library of hundreds of MiB would cost seconds of a launching server's disk: it is
# compared by its size, unless everything is asked for.
LARGE_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
# The wheel specification wants sha256 or better.
ALGORITHMS = {"sha256", "sha384", "sha512"}
# More than this is another version copied over the old one, not a patch.
MAX_LISTED = 500
FILES_AN_EVENT = 200


class Row(NamedTuple):
    """One file as RECORD has it; ``digest`` in urlsafe base64 without padding."""

    path: str
    algorithm: str
    digest: str
    size: Optional[int]


def parse_record(text: str) -> List[Row]:
    """The files of a RECORD that have a hash, and as rows without one those that have none."""
    rows = []
    for fields in csv.reader(text.splitlines()):
        path, hashed, size = (*fields, "", "", "")[:3]
        if path:
            algorithm, _, digest = hashed.partition("=")
            known = int(size) if size.isascii() and size.isdigit() else None
            rows.append(Row(path, algorithm, digest, known))
    return rows


def check(
    context: Context, distribution: Distribution, thorough: bool = False
) -> Generator[Facts, None, Facts]:
    """Compares a package's files with its RECORD.

    Args:
        context: The operation's surroundings; it may call this off.
        distribution: Which.
        thorough: Hash large files too.

    Yields:
        ``{"event": "checked", ...}`` now and then; returns what :func:`unchecked` describes.
    """
    facts = unchecked(distribution)
    try:
        with open(
            os.path.join(distribution.metadata, "RECORD"), encoding="utf-8", newline=""
        ) as file:
            rows = parse_record(file.read())
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        facts["problem"] = "no RECORD to compare with: {}".format(reason)
        return facts
    modified: List[Facts] = []
    for number, row in enumerate(rows):
        if number % FILES_AN_EVENT == 0:
            context.check()
            yield {"event": "checked", "name": distribution.name, "files": number}
        if row.digest:
            facts["files"] += 1
            path = os.path.join(distribution.site, row.path)
            change = _compare(path, row, thorough)
            if change is not None:
                modified.append(dict(change, path=row.path))
            elif row.size is not None and row.size > LARGE_BYTES and not thorough:
                facts["by_size_alone"] += 1
    modified += [_added(distribution.site, path) for path in _unlisted(distribution.site, rows)]
    facts["modified_count"] = len(modified)
    facts["modified"] = sorted(modified, key=lambda change: str(change["path"]))[:MAX_LISTED]
    facts["checked"] = True
    return facts


def unchecked(distribution: Distribution) -> Facts:
    """A package of which nothing was compared yet.

    ``checked`` says whether it was, ``problem`` why not; ``files`` counts those with a hash,
    ``by_size_alone`` those among them that were too large to hash; ``modified`` lists
    ``path``, ``state`` (``changed``, ``missing``, ``added``, ``unreadable``), and where there
    is a file its ``sha256``, ``bytes`` and ``mtime_s``.
    """
    return {
        "name": distribution.name,
        "version": distribution.version,
        "site": distribution.site,
        "checked": False,
        "problem": None,
        "files": 0,
        "by_size_alone": 0,
        "modified_count": 0,
        "modified": [],
        "checkout": None,
    }


def _compare(path: str, row: Row, thorough: bool) -> Optional[Facts]:
    if row.algorithm not in ALGORITHMS:
        return {"state": "unreadable", "problem": "unknown hash {}".format(row.algorithm)}
    try:
        size = os.stat(path).st_size
        same = row.size is None or size == row.size
        if same and (thorough or size <= LARGE_BYTES):
            same = _digest(path, row.algorithm) == row.digest
        return None if same else dict(described(path), state="changed")
    except FileNotFoundError:
        return {"state": "missing"}
    except OSError as error:
        return {"state": "unreadable", "problem": error.strerror}


def described(path: str) -> Facts:
    """What tells one content of a file from another.

    Raises:
        OSError: if it cannot be read.
    """
    found = os.stat(path)
    small = found.st_size <= LARGE_BYTES
    return {
        "sha256": hash_file(path, "sha256").hexdigest() if small else None,
        "bytes": found.st_size,
        "mtime_s": int(found.st_mtime),
    }


def hash_file(path: str, algorithm: str) -> Any:
    """A file's hash.

    Raises:
        OSError: if it cannot be read.
    """
    digest = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest


def _digest(path: str, algorithm: str) -> str:
    digest = hash_file(path, algorithm).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def _unlisted(site: str, rows: Iterable[Row]) -> Iterator[str]:
    """Files in the package's own folders that no wheel brought.

    A folder is its own if RECORD has its ``__init__.py``; a namespace is shared with others.
    """
    listed: Set[str] = {os.path.normpath(row.path) for row in rows}
    tops = sorted(
        {path.partition(os.sep)[0] for path in listed if path.count(os.sep) == 1}
        & {os.path.dirname(path) for path in listed if os.path.basename(path) == "__init__.py"}
    )
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(site, top)):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), site)
                if path not in listed and not name.endswith((".pyc", ".pyo")):
                    yield path


def _added(site: str, path: str) -> Facts:
    try:
        return dict(described(os.path.join(site, path)), state="added", path=path)
    except OSError as error:
        return {"path": path, "state": "unreadable", "problem": error.strerror}
