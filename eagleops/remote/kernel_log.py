"""The kernel's log, from whichever of its three keepers answers, and the Xid errors in it.

``/dev/kmsg`` is the kernel's own ring: whole, but of this boot alone, and old lines are
overwritten. The journal may reach back over boots. ``dmesg`` is for where neither can be read.
A container sees its host's log or none: the log knows no namespaces.
"""

from __future__ import annotations

import re
import time
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Pattern, Tuple

from eagleops.remote import command, kmsg, xid
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.utc import utc

LIMIT_S = 30.0
WORD = "NVRM: Xid"
RIGHTS = (
    "Log in as root, or allow it: sysctl kernel.dmesg_restrict=0, or membership in the groups "
    "adm or systemd-journal."
)
JOURNAL = ("journalctl", "--no-pager", "-q", "-o", "short-unix", "_TRANSPORT=kernel")
# journalctl -o short-unix (time, host, who), and dmesg's own form; some kernels name the thread.
JOURNAL_LINE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) \S+ \S+: (.*)")
DMESG_LINE = re.compile(r"\[ *([0-9]{1,12}\.[0-9]{1,9})\](?:\[ *[TC][0-9]+\])? (.*)")
# A clock that was set, and a kernel that counts a little otherwise than the clock.
SLACK_S = 2.0


class Log(NamedTuple):
    """What one keeper told.

    Attributes:
        source: ``kmsg``, ``journal``, ``dmesg`` or ``none``.
        told: The Xid lines with their times, in seconds since the epoch.
        from_s: From when on the log holds everything; None where that is not known.
        lines: How many lines were looked at; None where that is not known.
        problem: Why it could not be read.
    """

    source: str
    told: List[Tuple[float, xid.Xid]]
    from_s: Optional[float] = None
    lines: Optional[int] = None
    problem: Optional[str] = None


def xids(context: Context, since_s: Optional[float] = None) -> Dict[str, Any]:
    """The Xid errors since then, and how far the log that told them reaches.

    Args:
        context: The operation's surroundings.
        since_s: Seconds since the epoch; None for as far as the log reaches.

    Returns:
        ``xids`` (each GPU, code and process once: ``time_utc``, ``last_utc``, ``count``,
        ``bus_id``, ``xid``, ``pid``, ``process``, ``text``, ``instance``) and ``kernel_log``
        (``source``, ``problem``, ``from_utc``, ``lines``).
    """
    set_back = since_s is not None and since_s > time.time() + SLACK_S
    if set_back:
        since_s = None
    log = _read(context, since_s)
    told = [(at_s, one) for at_s, one in log.told if since_s is None or at_s >= since_s]
    problem = log.problem
    if set_back and problem is None:
        problem = (
            "the machine's clock was set back since the last night: this is all that is kept "
            "of this boot"
        )
    if log.from_s is not None and since_s is not None and log.from_s > since_s + SLACK_S:
        problem = (
            "the kernel's log begins at {}: what it said before is not kept. A journal on "
            "disk keeps it (Storage=persistent in journald.conf).".format(utc(log.from_s))
        )
    return {
        "xids": [_as_json(group) for group in xid.folded(told)],
        "kernel_log": {
            "source": log.source,
            "problem": problem,
            "from_utc": None if log.from_s is None else utc(log.from_s),
            "lines": log.lines,
        },
    }


def _as_json(group: Dict[str, Any]) -> Dict[str, Any]:
    times = {"time_utc": utc(group.pop("time_s")), "last_utc": utc(group.pop("last_s"))}
    return dict(group, **times)


def _read(context: Context, since_s: Optional[float]) -> Log:
    stand_in: Optional[str] = context.options["kernel_log"]
    ring = _ring(context, stand_in or kmsg.DEVICE)
    reaches = ring.from_s is not None and (since_s is None or ring.from_s <= since_s + SLACK_S)
    if stand_in is not None or (ring.problem is None and reaches):
        return ring
    kept = _journal(context, since_s)
    if kept.problem is None:
        return kept
    here = ring if ring.problem is None else _dmesg(context)
    if kept.source != "none" and (here.from_s is None or _journal_has(context, here.from_s)):
        return kept
    if here.problem is None:
        return here
    problems = "; ".join(log.problem or "" for log in (ring, kept, here))
    return _unread("{}. {}".format(problems, RIGHTS))


def _ring(context: Context, path: str) -> Log:
    clock = kmsg.Clock.now()
    told: List[Tuple[float, str]] = []
    lines, from_s = 0, None
    try:
        for record in kmsg.records(context, path):
            lines += 1
            if from_s is None:
                # The first record of a boot is number 0: before it nothing was said.
                from_s = clock.epoch_s(record.stamp_s if record.sequence else 0.0)
            if record.facility == kmsg.KERNEL and WORD in record.text:
                told.append((clock.epoch_s(record.stamp_s), record.text))
    except OSError as error:
        return _unread("{}: {}".format(path, error.strerror))
    if not lines:
        return _unread("{} is empty".format(path))
    return Log("kmsg", _told(told), from_s, lines)


def _journal(context: Context, since_s: Optional[float]) -> Log:
    """What the journal keeps since then; of this boot alone where no time is given."""
    if command.find(context, JOURNAL[0]) is None:
        return _unread("no journalctl on PATH")
    since = ["-b"] if since_s is None else ["--since", "@{:d}".format(int(since_s))]
    problem = None
    try:
        # A reader's rights are those of files: what may not be read looks as if it were empty.
        if not _journal_has(context):
            return _unread("journalctl shows no line of the kernel")
        if since_s is not None and not _journal_has(context, since_s):
            problem = "the journal holds nothing of the kernel before {}".format(utc(since_s))
        answer = command.run(context, [*JOURNAL, *since, "--grep", WORD], LIMIT_S)
        if answer.stderr.strip():  # built without pattern matching
            answer = command.run(context, [*JOURNAL, *since], LIMIT_S)
    except Failure as failure:
        return _unread(failure.message)
    told = _told(stamped_lines(answer.stdout, JOURNAL_LINE))
    return Log("journal", told, problem=problem)


def _journal_has(context: Context, before_s: Optional[float] = None) -> bool:
    """Whether it holds a line of the kernel, from before then."""
    # `-n 1` without -r shows nothing beside --until: seen with systemd 252.
    until = [] if before_s is None else ["--until", "@{:d}".format(int(before_s))]
    answer = command.run(context, [*JOURNAL, "-r", "-n", "1", *until], LIMIT_S)
    return any(stamped_lines(answer.stdout, JOURNAL_LINE))


def _dmesg(context: Context) -> Log:
    program = command.find(context, "dmesg")
    if program is None:
        return _unread("no dmesg on PATH")
    clock = kmsg.Clock.now()
    try:
        answer = command.run(context, [program], LIMIT_S)
    except Failure as failure:
        return _unread(failure.message)
    stamped = list(stamped_lines(answer.stdout, DMESG_LINE))
    if answer.exit_status != 0 or not stamped:
        return _unread((answer.stderr.strip().splitlines() or ["dmesg: no answer"])[0])
    told = _told((clock.epoch_s(stamp_s), text) for stamp_s, text in stamped)
    return Log("dmesg", told, clock.epoch_s(stamped[0][0]), len(stamped))


def stamped_lines(text: str, line: Pattern[str]) -> Iterator[Tuple[float, str]]:
    """The lines of a program's output that begin with a time, as ``line`` finds it."""
    for one in text.splitlines():
        found = line.match(one)
        if found:
            yield float(found.group(1)), found.group(2)


def _told(stamped: Iterable[Tuple[float, str]]) -> List[Tuple[float, xid.Xid]]:
    parsed = ((at_s, xid.parse(text)) for at_s, text in stamped if WORD in text)
    return [(at_s, found) for at_s, found in parsed if found is not None]


def _unread(problem: str) -> Log:
    return Log("none", [], problem=problem)
