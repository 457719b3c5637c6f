"""Files whose flock says that something is going on; the kernel lets go when its process ends."""

from __future__ import annotations

import fcntl
import os

from eagleops.remote.failure import Failure


def opened(home: str, name: str, failure: str) -> int:
    """A descriptor of a lock's file, which is made where there is none; it is not locked yet.

    Args:
        home: The folder of this user's state.
        name: The file's.
        failure: The kind of the failure where no state can be kept.

    Raises:
        Failure: of that kind.
    """
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        return os.open(os.path.join(home, name), flags, 0o600)
    except OSError as error:
        raise Failure(
            failure,
            "no state can be kept in {}: {}".format(home, error.strerror),
            way_out="Name another folder as `state_home:` of this machine in hosts.yaml.",
        ) from None


def taken(descriptor: int) -> bool:
    """Takes the lock if nobody has it; whether it is held now. Never waits."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
