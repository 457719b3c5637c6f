"""Why a server ended, read from its log.

An engine's log ends in a heap of consequences: SGLang's main process dies of a SIGKILL that it
sends itself, vLLM's says "see root cause above". So the search begins at the first sign that
something died (an :attr:`Signs.deaths` line), takes the first root cause after it, and falls
back on the whole log, then on the last exception, then on a death that nobody explains, then
on how the process ended.

What an engine logs on its way is no cause, whatever it mentions: vLLM warns at each start of
"OSError: [Errno 24] Too many open files". So patterns are held against lines that no logger
wrote (tracebacks, argparse, NCCL) and against records of errors, without their prefix (time,
rank, level), so that ``^`` is where an exception begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs


@attrs.frozen
class Cause:
    """Why a server ended.

    Attributes:
        kind: A stable name, for example ``cuda_out_of_memory``.
        text: What happened, in words.
        way_out: What the reader can do now.
        line: The line of the log that shows it; empty where the process's end alone does.
    """

    kind: str
    text: str
    way_out: str
    line: str = ""


@attrs.frozen
class LogLine:
    """A line of a log, as a terminal would show it.

    Attributes:
        text: Without the prefix that a logger put before it.
        may_blame: Whether it may name a cause: no logger wrote it, or it is an error's record.
    """

    text: str
    may_blame: bool = True

    @classmethod
    def read(cls, line: str) -> LogLine:
        """Without colours, and of a progress bar only what it showed last."""
        shown = _ESCAPE.sub("", line.rstrip("\r\n").rpartition("\r")[2][:_LINE_CHARACTERS])
        prefix = _PREFIX.match(shown.rstrip())
        text = shown.rstrip()[prefix.end() if prefix else 0 :]
        level = (prefix and prefix["level"]) or ""
        logged = bool(prefix and (level or prefix["time"]))
        return cls(text, not logged or level in _ERRORS or text.startswith(_ERRORS))


@attrs.frozen
class FailurePattern:
    """A line of a log that names a cause.

    Attributes:
        kind: As in :class:`Cause`.
        pattern: Searched for in each line.
        text: What happened; may name groups of the pattern as ``{group}``.
        way_out: Likewise.
        general: Whether it says less than others may: they are taken before it, if they match
            anywhere after the first sign of death.
        sharper: Kinds that say more of the same thing, and may stand before that sign.
        logged: Whether a record that is not marked as an error may name the cause.
    """

    kind: str
    pattern: re.Pattern[str]
    text: str
    way_out: str
    general: bool = False
    sharper: tuple[str, ...] = ()
    logged: bool = False

    def read(self, line: LogLine) -> Cause | None:
        """The cause, if this line names it."""
        found = self.pattern.search(line.text) if self.logged or line.may_blame else None
        if found is None:
            return None
        groups = {name: (value or "").strip() for name, value in found.groupdict().items()}
        text, way_out = self.text.format(**groups), self.way_out.format(**groups)
        return Cause(self.kind, text.strip(), way_out, line.text)


@attrs.frozen
class Signs:
    """What an engine's log looks like when it dies.

    Attributes:
        causes: Lines that name a root cause. Of two that match one line, the first is taken.
        deaths: Lines that say that something died, never why.
        consequences: Exceptions that only follow from another process's death.
        silences: Lines that tell of a death without a cause, for when nothing else tells one.
    """

    causes: tuple[FailurePattern, ...]
    deaths: re.Pattern[str]
    consequences: re.Pattern[str]
    silences: tuple[FailurePattern, ...] = ()

    @classmethod
    def of(cls, causes: tuple[FailurePattern, ...]) -> Signs:
        """Of a program of which nothing is known but what many share."""
        nothing = re.compile(r"(?!)")
        return cls(causes, nothing, nothing)


def pattern(
    kind: str,
    regex: str,
    text: str,
    way_out: str,
    *,
    general: bool = False,
    sharper: tuple[str, ...] = (),
    logged: bool = False,
) -> FailurePattern:
    """A row of a table: see :class:`FailurePattern`."""
    return FailurePattern(kind, re.compile(regex), text, way_out, general, sharper, logged)


def diagnosed(
    signs: Signs, log_lines: Sequence[str], exit_status: int | None, signal: str | None
) -> Cause | None:
    """The cause that a log and a process's end show; None if they show none.

    Args:
        signs: The engine's.
        log_lines: The last lines of the log, in order.
        exit_status: Of the main process; None where a signal ended it. A negative number
            counts as a signal.
        signal: That signal's name.
    """
    lines = [LogLine.read(line) for line in log_lines]
    start = next((n for n, line in enumerate(lines) if signs.deaths.search(line.text)), 0)
    cause = _first(signs.causes, lines[start:]) or _first(signs.causes, lines)
    if cause is not None:
        sharper = {kind for row in signs.causes if row.kind == cause.kind for kind in row.sharper}
        return _first([row for row in signs.causes if row.kind in sharper], lines) or cause
    return (
        _last_exception(signs, lines[start:])
        or _first(signs.silences, lines)
        or _ended(exit_status, signal)
    )


def _first(rows: Sequence[FailurePattern], lines: Sequence[LogLine]) -> Cause | None:
    for general in (False, True):
        of_that_kind = [row for row in rows if row.general is general]
        for line in lines:
            for row in of_that_kind:
                if cause := row.read(line):
                    return cause
    return None


def _last_exception(signs: Signs, lines: Sequence[LogLine]) -> Cause | None:
    """The last exception that ended a traceback and follows from no other."""
    in_traceback = False
    found = ""
    for line in (each.text for each in lines):
        if line.endswith("Traceback (most recent call last):"):
            in_traceback = True
        elif in_traceback and line and not line[0].isspace():
            in_traceback = False
            if _EXCEPTION.match(line) and not signs.consequences.search(line):
                found = line
    if not found:
        return None
    return Cause(
        "exception",
        f"an exception ended it: {found[:300]}",
        "The traceback above that line in its log says where.",
        found,
    )


def _ended(exit_status: int | None, signal: str | None) -> Cause | None:
    if signal is None and exit_status is not None and exit_status < 0:
        signal = _SIGNALS.get(-exit_status)
    if signal is None and exit_status is not None and exit_status > _SHELL_SIGNAL_BASE:
        signal = _SIGNALS.get(exit_status - _SHELL_SIGNAL_BASE)
    return _BY_SIGNAL.get(signal or "")


_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# What vLLM's loggers put before a line (process, PID, level, time, place), and SGLang's (time
# and rank).
_PREFIX = re.compile(
    r"(?:\([^()]* pid=\d+\) ?)?"
    r"(?:(?P<level>[A-Z]+) \d\d-\d\d [\d:.]+ \[[^\]]*\] ?|(?P<time>\[\d{4}-\d\d-\d\d[^\]]*\]) ?)?"
)
_ERRORS = ("ERROR", "CRITICAL")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?$")
# An engine's arguments in one line run to 20,000 characters; no cause stands so far in.
_LINE_CHARACTERS = 4000
_SHELL_SIGNAL_BASE = 128
_SIGNALS: Mapping[int, str] = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
}
_BY_SIGNAL: Mapping[str, Cause] = {
    cause.kind.upper(): cause
    for cause in (
        Cause(
            "sigkill",
            "its log names no cause for the SIGKILL: the kernel's OOM killer ends a process so, "
            "and someone else's kill -9 does",
            "Ask the kernel: `dmesg -T | grep -i 'killed process'`, for a container on its host.",
        ),
        Cause(
            "sigbus",
            "memory was not there that should be (SIGBUS): most often /dev/shm is full",
            "See `df -h /dev/shm` on that machine, and give a container more of it.",
        ),
        Cause(
            "sigsegv",
            "native code crashed (SIGSEGV)",
            "The log may name the thread (faulthandler); otherwise look at the driver and at the "
            "versions of its CUDA libraries.",
        ),
        Cause(
            "sigill",
            "a library was built for another processor (SIGILL)",
            "Install a build for this processor.",
        ),
        Cause(
            "sigabrt",
            "native code gave up (SIGABRT)",
            "The lines before the end of the log say why.",
        ),
        Cause(
            "sigterm",
            "something on that machine asked it to stop (SIGTERM)",
            "Look for who did: another person, systemd, or a container that was stopped.",
        ),
    )
}
