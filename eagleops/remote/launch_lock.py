"""The lock that every change of who runs what takes: one at a time for this user's machine.

It is held for hundredths of a second. What lasts longer is a reservation, or a record.
"""

from __future__ import annotations

import fcntl
import os
import time

from eagleops.remote import server_record
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure

LOCK = ".spawn.lock"
LIMIT_S = 30.0
POLL_S = 0.01


def take(context: Context) -> int:
    """A descriptor that holds the lock; closing it lets go, unless a child has it too.

    Raises:
        Failure: ``locked`` after 30 s, ``spawn_failed`` where no state can be kept.
    """
    home = server_record.servers_home(context)
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(os.path.join(home, LOCK), flags, 0o600)
    except OSError as error:
        raise Failure(
            "spawn_failed",
            "no state can be kept in {}: {}".format(home, error.strerror),
            way_out="Name another folder as `state_home:` of this machine in hosts.yaml.",
        ) from None
    try:
        _await(context, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _await(context: Context, descriptor: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not _taken(descriptor):
        if time.monotonic() >= deadline:
            raise Failure("locked", "another launch has not ended for {:g} s".format(LIMIT_S))
        context.sleep(POLL_S)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
