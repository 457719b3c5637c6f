"""The lock that every change of who runs what takes: one at a time for this user's machine.

It is held for hundredths of a second. What lasts longer is a reservation, or a record.
"""

from __future__ import annotations

import os
import time

from eagleops.remote import lock_file, server_record
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
    descriptor = lock_file.opened(home, LOCK, "spawn_failed")
    try:
        _await(context, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _await(context: Context, descriptor: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not lock_file.taken(descriptor):
        if time.monotonic() >= deadline:
            raise Failure("locked", "another launch has not ended for {:g} s".format(LIMIT_S))
        context.sleep(POLL_S)
