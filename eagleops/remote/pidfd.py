"""Handles on processes that a reused PID cannot mislead: pidfd_open(2), pidfd_send_signal(2).

Python has both from 3.9 on; for 3.8 they are asked of the kernel by number, which is the
same on every architecture that NVIDIA has drivers for.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
from typing import Optional

_PIDFD_SEND_SIGNAL = 424
_PIDFD_OPEN = 434
# Not there before Linux 5.3, or refused by an old container's seccomp filter, which
# answers EPERM: of its own the call needs no permission.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES})
# No descriptor is left: the slower way serves too.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def open_pidfd(pid: int) -> Optional[int]:
    """A descriptor of the process that has ``pid`` now; None where the kernel gives none.

    Raises:
        ProcessLookupError: if there is no such process.
    """
    try:
        opened = getattr(os, "pidfd_open", _open_by_number)(pid)
    except OSError as error:
        if error.errno in _UNSUPPORTED | _EXHAUSTED:
            return None
        # EINVAL: the number is a thread's, or a zombie's on some kernels.
        if error.errno in {errno.ESRCH, errno.EINVAL}:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH)) from None
        raise
    return int(opened)


def send_signal(pidfd: int, number: signal.Signals) -> None:
    """Sends a signal to the very process that ``pidfd`` was opened for.

    Raises:
        ProcessLookupError: if it has ended.
        PermissionError: if this user may not.
    """
    getattr(signal, "pidfd_send_signal", _send_by_number)(pidfd, number)


def ended(pidfd: int) -> bool:
    """Whether the whole process has ended, every thread of it; its parent may not have seen."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _open_by_number(pid: int) -> int:
    return _syscall(_PIDFD_OPEN, pid, 0)


def _send_by_number(pidfd: int, number: signal.Signals) -> None:
    _syscall(_PIDFD_SEND_SIGNAL, pidfd, int(number), None, 0)


def _syscall(number: int, *arguments: Optional[int]) -> int:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    wide = [ctypes.c_void_p(None) if one is None else ctypes.c_long(one) for one in arguments]
    result = function(ctypes.c_long(number), *wide)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)
