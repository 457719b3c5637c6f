"""Who holds a machine, as another process of the same computer knows it: does it still?"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from eagleops.remote import process_table, server_record, supervisor

MACHINE_ID = Path("/etc/machine-id")


@attrs.frozen
class Holder:
    """One hold of one process on one computer.

    Attributes:
        computer: Its machine-id, or its host's name where it has none.
        pid_ns: The inode of its PID namespace: a container's PIDs are not its host's.
        boot_id: Of the boot in which it runs.
        start_ticks: Clock ticks from that boot to its start: PIDs are used again.
        hold: The hold's own number; a process may have several, one after the other.
    """

    computer: str
    pid_ns: int
    boot_id: str
    pid: int
    start_ticks: int
    hold: str = ""

    @classmethod
    def new(cls) -> Holder:
        """A hold of this process."""
        pid = os.getpid()
        namespace, boot_id = server_record.pid_namespace(), server_record.boot_id()
        ticks = supervisor.start_ticks(pid)
        return cls(_computer(), namespace, boot_id, pid, ticks, secrets.token_hex(8))

    @classmethod
    def parse(cls, text: str) -> Holder | None:
        """The hold that :meth:`name` named; None for another text."""
        with contextlib.suppress(ValueError, TypeError):
            values: list[Any] = json.loads(text)
            return cls(*values)
        return None

    @property
    def name(self) -> str:
        """All of it as a text."""
        return json.dumps(list(attrs.astuple(self)))

    def has_ended(self) -> bool:
        """Whether it is known to have ended; False also where that cannot be known from here."""
        here = Holder.new()
        if (self.computer, self.pid_ns) != (here.computer, here.pid_ns):
            return False
        if self.boot_id != here.boot_id:
            return True
        if (self.pid, self.start_ticks) == (here.pid, here.start_ticks):
            return self.name not in _LIVING
        found = process_table.stat(self.pid)
        return found is None or not found.alive or found.start_ticks != self.start_ticks


# By name, this process's holds. One that is not here any more has lost its link.
_LIVING: set[str] = set()


@contextlib.contextmanager
def living(name: str) -> Iterator[None]:
    """While this lasts, the hold of that name has not ended."""
    _LIVING.add(name)
    try:
        yield
    finally:
        _LIVING.discard(name)


@cache
def _computer() -> str:
    with contextlib.suppress(OSError):
        return MACHINE_ID.read_text(encoding="ascii").strip() or socket.gethostname()
    return socket.gethostname()
