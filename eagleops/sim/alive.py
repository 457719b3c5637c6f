"""Whether a process still lives, told by more than its number: PIDs are used again."""

from __future__ import annotations

from eagleops.sim.layout import read

# Its files are closed and its memory is free, but nobody has reaped it.
_DEAD_STATES = frozenset((b"Z", b"X", b"x"))


def start_ticks(pid: int) -> int | None:
    """When the process was started, in clock ticks since boot; None where it has died."""
    try:
        stat = read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The name, in parentheses, may hold anything: blanks and parentheses too.
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in _DEAD_STATES else int(fields[19])


def boot_id() -> str:
    """The running kernel's: monotonic times of another boot mean nothing."""
    return read("/proc/sys/kernel/random/boot_id").decode().strip()


def title(pid: int) -> str:
    """What ``ps`` shows for the process: its argv, or what setproctitle made of it."""
    try:
        raw = read(f"/proc/{pid}/cmdline")
    except OSError:
        return ""
    return raw.rstrip(b"\0 ").replace(b"\0", b" ").decode("utf-8", "replace")
