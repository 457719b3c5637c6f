"""Where nights lie, who may write them, and what is said of it when it goes wrong."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from eagleops import whole_file
from eagleops.errors import NightsError, NightsHeld
from eagleops.ledger.run import now_utc
from eagleops.remote import lock_file, process_table

FOLDER_MODE, FILE_MODE = 0o700, 0o600
LOCK = "lock"
# A write takes less than a second; what is this old was left by a process that was killed.
PARTIAL_AGE_S = 3600.0
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def refusal(path: Path, did: str, error: OSError) -> NightsError:
    """The error for what the system refused: ``did`` is what could not be done."""
    way_out = "The nights stand beside the ledger: name another place as `ledger:` in hosts.yaml."
    if error.errno in _FULL:
        way_out = "What was kept before is whole. Make room on the disk, then try again."
    problem = f"{did}: {error.strerror or error}"
    return NightsError(problem=problem, where=str(path), way_out=way_out, file=str(path))


def make_folder(folder: Path) -> None:
    """Makes the folder of a suite and those above it, for the user's eyes alone.

    Raises:
        NightsError: if it cannot be made.
    """
    try:
        folder.parent.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        folder.parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
        folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
    except OSError as error:
        raise refusal(folder, "the nights' folder cannot be made", error) from error


def write_whole(path: Path, text: bytes) -> None:
    """Writes a night's file, for the user's eyes alone.

    Raises:
        NightsError: if it cannot be written; then the old text stands.
    """
    try:
        whole_file.write(path, text, mode=FILE_MODE)
    except OSError as error:
        raise refusal(path, "the night cannot be kept", error) from error


def remove(path: Path) -> None:
    """Removes a night, if nobody did.

    Raises:
        NightsError: if it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise refusal(path, "an old night cannot be removed", error) from error


def remove_partial(folder: Path) -> None:
    """Removes what writers left that were killed."""
    for path in folder.glob(f".*{whole_file.PARTIAL}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > PARTIAL_AGE_S:
                path.unlink()


def set_aside(path: Path) -> Path:
    """Gives a file that is no night a new name, and returns it.

    Raises:
        OSError: if it cannot be renamed, or is gone.
    """
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    return path.rename(path.with_name(f"{path.name}.damaged-{stamp}"))


@contextlib.contextmanager
def held(folder: Path, suite: str) -> Iterator[None]:
    """Keeps every other process of this user from running the suite meanwhile.

    The kernel lets go of it when the process ends, however it does.

    Raises:
        NightsHeld: if another process has it.
        NightsError: if nothing can be locked there.
    """
    path = folder / LOCK
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
            stack.callback(os.close, descriptor)
            ours = lock_file.taken(descriptor)
            if ours:
                _say(descriptor)
        except OSError as error:
            raise refusal(path, "the suite cannot be locked", error) from error
        if not ours:
            raise _is_held(path, suite, _holder(descriptor))
        try:
            yield
        finally:
            # Who reads it between here and the next holder must not be told of this one.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)


def _say(descriptor: int) -> None:
    """Who holds it, for whoever wants it meanwhile."""
    user = process_table.user(os.geteuid())
    holder = {"pid": os.getpid(), "user": user, "client": socket.gethostname()}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({**holder, "since_utc": now_utc()}).encode("ascii"), 0)


def _holder(descriptor: int) -> dict[str, Any]:
    try:
        told = json.loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):  # it has not said so yet
        return {}
    return told if isinstance(told, dict) else {}


def _is_held(path: Path, suite: str, told: dict[str, Any]) -> NightsHeld:
    pid = told.get("pid")
    who = f"process {pid}" if pid else "another process"
    since = f" since {told['since_utc'][:19]}Z" if told.get("since_utc") else ""
    user, client = str(told.get("user", "")), str(told.get("client", ""))
    by = f" of {user} on {client}" if user and client else ""
    return NightsHeld(
        problem=f"the suite {suite} is being run by {who}{by}{since}",
        where=str(path),
        way_out="Wait until it is done, or end it: it then puts right what it began.",
        file=str(path),
        pid=pid,
        user=user,
        client=client,
        since_utc=str(told.get("since_utc", "")),
    )
