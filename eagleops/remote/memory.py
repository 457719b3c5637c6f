"""A process's memory through ``/proc/PID/mem``: bounded, and without stopping the process.

``pread`` on that file needs the right to trace a process but traces none: no attach, no
signal, no stop. Every answer is limited in size, and all answers together are: an address
that makes no sense costs an error, not a hang.
"""

from __future__ import annotations

import os
from typing import Callable, Dict, Optional, Type

PAGE_BYTES = 4096
RUN_PAGES = 16
BUDGET_BYTES = 64 * 1024 * 1024
BUDGET_READS = 50_000
HIGHEST_ADDRESS = 2**63 - 1


class CannotRead(Exception):
    """An address, a size or a structure in a process's memory makes no sense, or is gone."""


class Starting(CannotRead):
    """The process has not come far enough yet: a moment later there may be an answer."""


class Memory:
    """Reads by address.

    Args:
        pread: Gives up to ``size`` bytes at ``address``; raises OSError where nothing is.
        budget_bytes: Limit of all bytes together, then CannotRead.
        budget_reads: Limit of all reads together, then CannotRead.
    """

    def __init__(
        self,
        pread: Callable[[int, int], bytes],
        budget_bytes: int = BUDGET_BYTES,
        budget_reads: int = BUDGET_READS,
    ) -> None:
        self._pread = pread
        self._bytes_left = budget_bytes
        self._reads_left = budget_reads
        self._pages: Dict[int, bytes] = {}

    def some(self, address: int, size: int) -> bytes:
        """At least one of ``size`` bytes.

        Raises:
            CannotRead: if nothing is mapped there, or the budget is used up.
        """
        if not 0 < address <= HIGHEST_ADDRESS - size:
            raise CannotRead("0x{:x} is no address".format(address))
        self._reads_left -= 1
        self._bytes_left -= size
        if self._bytes_left < 0 or self._reads_left < 0:
            raise CannotRead("the answer is larger than any real one: reading was given up")
        try:
            content = self._pread(address, size)
        except (OSError, OverflowError, ValueError):
            content = b""
        if not content:
            raise CannotRead("no memory is mapped at 0x{:x}".format(address))
        return content

    def exact(self, address: int, size: int) -> bytes:
        """Exactly ``size`` bytes.

        Raises:
            CannotRead: if not all of them are mapped, or the budget is used up.
        """
        content = self.some(address, size)
        if len(content) != size:
            raise CannotRead("no memory is mapped at 0x{:x}".format(address + len(content)))
        return content

    def load(self, addresses: "list[int]") -> None:
        """Reads the pages of these addresses ahead for :meth:`string`, neighbours at once."""
        numbers = sorted({address // PAGE_BYTES for address in addresses if address > 0})
        start = 0
        for at in range(1, len(numbers) + 1):
            run = at - start
            if at == len(numbers) or numbers[at] != numbers[at - 1] + 1 or run == RUN_PAGES:
                self._load_run(numbers[start], run)
                start = at

    def forget(self) -> None:
        """Drops what :meth:`load` has read, so that the next reading is a new one."""
        self._pages.clear()

    def string(self, address: int, limit: int) -> bytes:
        """The bytes from ``address`` up to a zero byte.

        Raises:
            CannotRead: if there is none within ``limit`` bytes, or memory ends before it.
        """
        pieces = []
        size = 0
        while size <= limit:
            page = self._page(address)
            start = address % PAGE_BYTES
            end = page.find(b"\0", start)
            pieces.append(page[start : end if end >= 0 else PAGE_BYTES])
            size += len(pieces[-1])
            if end >= 0 and size <= limit:
                return b"".join(pieces)
            if len(page) < PAGE_BYTES:
                raise CannotRead("a string at 0x{:x} runs into no memory".format(address))
            address += PAGE_BYTES - start
        raise CannotRead("a string is longer than {} bytes".format(limit))

    def _page(self, address: int) -> bytes:
        number = address // PAGE_BYTES
        if number not in self._pages:
            if number <= 0:
                raise CannotRead("0x{:x} is no address".format(address))
            self._pages[number] = self.some(number * PAGE_BYTES, PAGE_BYTES)
        return self._pages[number]

    def _load_run(self, first: int, count: int) -> None:
        try:
            content = self.some(first * PAGE_BYTES, count * PAGE_BYTES)
        except CannotRead:
            return  # string() says it of the page that is asked for
        for at in range(len(content) // PAGE_BYTES):
            self._pages[first + at] = content[at * PAGE_BYTES : (at + 1) * PAGE_BYTES]


class ProcessMemory:
    """``/proc/PID/mem``, open for the length of a ``with``.

    Raises:
        OSError: on entry, if the process is gone or may not be read.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._descriptor = -1

    def __enter__(self) -> Memory:
        self._descriptor = os.open("/proc/{}/mem".format(self._pid), os.O_RDONLY | os.O_CLOEXEC)
        return Memory(lambda address, size: os.pread(self._descriptor, size, address))

    def __exit__(self, kind: Optional[Type[BaseException]], error: object, trace: object) -> None:
        os.close(self._descriptor)
