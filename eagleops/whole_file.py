"""Files that are there whole or not at all, however the writer ends."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from pathlib import Path

# No suffix that a collector of .prom, .xml or .json files looks for, nor systemd.
PARTIAL = ".new"
# What the user's umask leaves of it.
ANYBODY = 0o666
_COUNTER = itertools.count()


def write(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Writes a file so that whoever reads it finds the old content or the new one, never a part.

    Args:
        path: In a folder that exists.
        data: All of it.
        mode: Its permissions, whatever the umask; those that the umask leaves without.

    Raises:
        OSError: if it cannot be written; then the old content stands.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}-{next(_COUNTER)}{PARTIAL}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(partial, flags, ANYBODY if mode is None else 0o600), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing to do there
            raise
    finally:
        os.close(descriptor)
