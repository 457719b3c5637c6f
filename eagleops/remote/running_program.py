"""The program that a process runs now, as ``/proc/PID`` shows it."""

from __future__ import annotations

import os
from typing import NamedTuple

from eagleops.remote.process_table import DEAD, parse_stat


class Program(NamedTuple):
    """The program that a process runs: another after each exec.

    Attributes:
        stack: Where its stack began; with ``env_start`` it tells one exec from the next.
        env_start, env_end: The memory that ``/proc/PID/environ`` shows; 0 where hidden.
    """

    ppid: int
    start_ticks: int
    stack: int
    arg_start: int
    arg_end: int
    env_start: int
    env_end: int


class Gone(Exception):
    """The process has ended, or holds no program any more."""


def program(pid: int) -> Program:
    """What ``/proc/PID/stat`` tells of it.

    Raises:
        Gone: if there is no such process, or it is a zombie.
    """
    try:
        line = content(pid, "stat")
        known = parse_stat(line)
    except (OSError, ValueError):
        raise Gone from None
    if known.state in DEAD:
        raise Gone
    fields = line[line.rindex(b")") + 1 :].split()
    arg_start, arg_end, env_start, env_end = (int(field) for field in fields[45:49])
    return Program(
        ppid=known.ppid,
        start_ticks=known.start_ticks,
        stack=int(fields[25]),
        arg_start=arg_start,
        arg_end=arg_end,
        env_start=env_start,
        env_end=env_end,
    )


def content(pid: int, name: str) -> bytes:
    """A file of ``/proc/PID``.

    Raises:
        OSError: if the process is gone, or may not be read.
    """
    with open("/proc/{}/{}".format(pid, name), "rb") as file:
        return file.read()


def content_or_empty(pid: int, name: str) -> bytes:
    """A file of ``/proc/PID``; nothing where it cannot be read."""
    try:
        return content(pid, name)
    except OSError:
        return b""


def executable_piece(pid: int, at: int, size: int) -> bytes:
    """A piece of the program's file, deleted or not.

    Raises:
        OSError: if the process is gone, or may not be read.
    """
    descriptor = os.open("/proc/{}/exe".format(pid), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, at)
    finally:
        os.close(descriptor)
