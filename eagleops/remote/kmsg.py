r"""The kernel's ring of messages, read from ``/dev/kmsg``.

A record (Documentation/ABI/testing/dev-kmsg of Linux)::

    4,1234,5140900,-;NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.
     SUBSYSTEM=pci

Priority, sequence, microseconds, flags, and more that may come; then the text, in which what
is not printable, and the backslash, stand as ``\x5c``. Lines that begin with a blank add to
the record before them.
"""

from __future__ import annotations

import errno
import os
import re
import time
from typing import Iterator, NamedTuple, Optional

from eagleops.remote.context import Context

DEVICE = "/dev/kmsg"
KERNEL = 0
# The kernel refuses a buffer that a record does not fit into; its own is 8 KiB.
RECORD_BYTES = 32 * 1024
# The ring is 128 KiB to some MiB; a stand-in that never ends must not fill the memory.
MOST_BYTES = 256 * 1024 * 1024
_RECORD = re.compile(rb"([0-9]{1,10}),([0-9]{1,20}),([0-9]{1,18})(?:,[^;]*)?;(.*)", re.DOTALL)
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")


class Record(NamedTuple):
    """One message.

    Attributes:
        facility: 0 for the kernel itself: what a program writes cannot have it.
        stamp_s: Seconds since boot, not counting the time asleep, as the kernel counts.
    """

    facility: int
    sequence: int
    stamp_s: float
    text: str


class Clock(NamedTuple):
    """How the kernel's stamps become times, at one moment.

    Stamps and CLOCK_MONOTONIC stand still while a machine sleeps. Of what was said before a
    sleep the time is told too late by its length, and never too early: nothing is left out
    as too old.
    """

    offset_s: float

    @classmethod
    def now(cls) -> "Clock":
        """By the machine's clock as it is set now."""
        return cls(time.time() - time.clock_gettime(time.CLOCK_MONOTONIC))

    def epoch_s(self, stamp_s: float) -> float:
        """Seconds since the epoch."""
        return self.offset_s + stamp_s


def parse(line: bytes) -> Optional[Record]:
    """The record of a line; None for one that adds to another, or is none."""
    found = _RECORD.match(line.rstrip(b"\n"))
    if found is None:
        return None
    text = _ESCAPE.sub(lambda code: bytes([int(code.group(1), 16)]), found.group(4))
    priority, sequence, stamp_us = (int(found.group(place)) for place in (1, 2, 3))
    return Record(priority >> 3, sequence, stamp_us / 1e6, text.decode("utf-8", "backslashreplace"))


def records(context: Context, path: str = DEVICE) -> Iterator[Record]:
    """Every record that is there now, the oldest first.

    Raises:
        OSError: if it may not be read.
        Failure: ``time_limit``.
        Cancelled: if the operation was called off meanwhile.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        rest = b""
        for data in _pieces(context, descriptor):
            *lines, rest = (rest + data).split(b"\n")
            yield from filter(None, map(parse, lines))
        yield from filter(None, [parse(rest)])
    finally:
        os.close(descriptor)


def _pieces(context: Context, descriptor: int) -> Iterator[bytes]:
    read = 0
    while read < MOST_BYTES:
        context.sleep(0)
        try:
            data = os.read(descriptor, RECORD_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno == errno.EPIPE:  # overwritten while it was read: on with the next
                continue
            raise
        if not data:
            return
        read += len(data)
        yield data
