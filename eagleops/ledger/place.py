"""Where a ledger's file lies, who may touch its name, and what becomes of a damaged one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path

from eagleops.errors import LedgerError

# What SQLite keeps beside a database; it belongs to it wherever it goes.
COMPANIONS = ("-wal", "-shm", "-journal")
MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
# By number, where this Python tells it (3.11 and newer), else by SQLite's own words.
CORRUPT_CODES = {11, 26}
CORRUPT_WORDS = ("malformed", "is not a database", "file is encrypted")

# Fields of /proc/self/mountinfo: proc(5).
MOUNT_POINT = 4
NETWORK_KINDS = {
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
}


def default_path(environ: Mapping[str, str] | None = None) -> Path:
    """``$XDG_DATA_HOME/eagleops/ledger.db``, or below ``~/.local/share``."""
    home = Path((os.environ if environ is None else environ).get("XDG_DATA_HOME", ""))
    # The XDG specification: a relative path is to be ignored.
    base = home if home.is_absolute() else Path.home() / ".local" / "share"
    return base / "eagleops" / "ledger.db"


@contextlib.contextmanager
def name_held(path: Path) -> Iterator[None]:
    """Keeps every other client from creating, migrating or renaming the file meanwhile.

    Raises:
        OSError: if the folder may not be written.
    """
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_corrupt(error: sqlite3.Error) -> bool:
    """Whether SQLite says that the file itself is damaged."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return (code & 0xFF) in CORRUPT_CODES
    return any(word in str(error) for word in CORRUPT_WORDS)


def damage(path: Path) -> str:
    """What is wrong with the file as its first bytes and its size tell; empty if nothing.

    Raises:
        OSError: if it cannot be read.
    """
    size = path.stat().st_size
    if size == 0:
        return "the file is empty, which a ledger never is"
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if len(header) < HEADER_BYTES or not header.startswith(MAGIC):
        return "the file is no SQLite database"
    if any(_size(Path(f"{path}{log}")) for log in ("-wal", "-journal")):
        return ""  # another client writes, or has died while it did: SQLite puts it right
    page_bytes, changed, pages, valid_for = (
        struct.unpack_from(">H", header, 16)[0],
        *struct.unpack_from(">I", header, 24),
        *struct.unpack_from(">I", header, 28),
        *struct.unpack_from(">I", header, 92),
    )
    expected = pages * (65536 if page_bytes == 1 else page_bytes)
    if changed == valid_for and size < expected:
        return f"the file is cut off: {size} of {expected} bytes are there"
    return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def set_aside(path: Path) -> Path:
    """Gives a damaged file and what belongs to it a new name, and returns it.

    To be called with :func:`name_held`.

    Raises:
        LedgerError: if it cannot be renamed.
    """
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    new = path.with_name(f"{path.name}.damaged-{stamp}")
    try:
        # The log goes first: a new database must never meet the old one's.
        for companion in (*COMPANIONS, ""):
            with contextlib.suppress(FileNotFoundError):
                Path(f"{path}{companion}").rename(f"{new}{companion}")
    except OSError as error:
        raise LedgerError(
            problem=f"the ledger is damaged and could not be set aside: {error.strerror}",
            where=str(path),
            way_out="Rename it yourself, or name another ledger (`ledger:` in hosts.yaml).",
            file=str(path),
        ) from error
    return new


def way_to_save(aside: Path) -> str:
    """How what is left in a damaged file can be had."""
    return (
        f"What it held is in {aside}; much of it can often be saved: "
        f"sqlite3 {aside} .recover | sqlite3 saved.db"
    )


def is_remote(folder: Path, mounts: str | None = None) -> bool:
    """Whether a folder lies on a network file system.

    SQLite's write-ahead log needs memory that all clients share, so one machine:
    https://www.sqlite.org/wal.html. ``mounts`` is the text of ``/proc/self/mountinfo``.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
        except OSError:  # no Linux: nothing tells
            return False
    there = os.path.realpath(folder)
    kinds: dict[str, str] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) > MOUNT_POINT and after:
            kinds[_unescaped(fields[MOUNT_POINT])] = after.split(" ")[0]
    over = [point for point in kinds if there == point or there.startswith(point.rstrip("/") + "/")]
    return bool(over) and kinds[max(over, key=len)] in NETWORK_KINDS


def _unescaped(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), field)
