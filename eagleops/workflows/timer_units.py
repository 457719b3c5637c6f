"""A service and a timer in systemd's own words. Pure: what stands in them is handed in.

Sources: systemd.syntax(7), systemd.service(5) "Command lines", systemd.exec(5), systemd.timer(5).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from eagleops.errors import UsageError

ENV = "/usr/bin/env"
DELAY = "5min"
# What a night is given beyond its own limit, to put things back and to send its message.
GRACE_S = 900
STOP_S = 300
_PREFIX = "eagleops-nightly-"
_NO_PROGRAM = re.compile(r"""['"\\]|\$[${]""")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN = re.compile(r"[A-Za-z0-9_@/=.,:+-]+")
# Nothing that ssh, a ProxyCommand or a key in somebody's home needs is taken away.
_SANDBOX = (
    "NoNewPrivileges=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectControlGroups=yes",
    "ProtectClock=yes",
    "ProtectHostname=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
)


@attrs.frozen(kw_only=True)
class Start:
    """How a night is started.

    Attributes:
        argv: The command; its first word is the interpreter's absolute path.
        folder: What relative paths are relative to.
        environ: What it needs beyond what systemd or cron give; no secrets.
        secrets: A file of ``NAME=value`` lines that need not be there; None for none.
    """

    argv: tuple[str, ...]
    folder: Path
    environ: Mapping[str, str]
    secrets: Path | None = None


def unit_name(suite: str) -> str:
    """The units' name, without its ending: a suite's name escaped as systemd-escape(1) does."""
    kept = re.compile(rb"[A-Za-z0-9:_.-]")
    return _PREFIX + "".join(
        chr(byte) if kept.match(bytes([byte])) else f"\\x{byte:02x}"
        for byte in suite.encode("utf-8", "surrogateescape")
    )


def service(suite: str, start: Start, *, limit_s: float, system: bool, sandboxed: bool) -> str:
    """The text of the service that makes one night.

    Args:
        suite: Its name.
        start: How.
        limit_s: The night's own limit, with what is put back after it, in seconds.
        system: Whether systemd runs it for the machine, not for a person.
        sandboxed: Whether it only reaches other machines: a server that it launched on this one
            would live in the same sandbox.

    Raises:
        UsageError: if a path or a value cannot be written in a unit.
    """
    # The manager of one person knows no network-online.target.
    network = ("Wants=network-online.target", "After=network-online.target") if system else ()
    lines = (
        *_head(unit_name(suite), "service", system),
        "[Unit]",
        _description(suite),
        *network,
        "",
        "[Service]",
        "Type=oneshot",
        f"ExecStart={command(start.argv)}",
        f"WorkingDirectory={_folder(start.folder)}",
        *(assignment(name, value) for name, value in start.environ.items()),
        *((f"EnvironmentFile=-{_env_file(start.secrets)}",) if start.secrets else ()),
        "# A night ends by its own limit; this one is for a night that does not.",
        f"TimeoutStartSec={limit_s + GRACE_S:.0f}",
        "# As Ctrl-C: what was running before is put back.",
        "KillSignal=SIGINT",
        f"TimeoutStopSec={STOP_S}",
        "# A server that was started again on this very machine outlives the night.",
        "KillMode=process",
        *(_SANDBOX if sandboxed else ()),
    )
    return "\n".join(lines) + "\n"


def timer(suite: str, schedule: str, *, system: bool) -> str:
    """The text of the timer that starts the service.

    Args:
        suite: Its name.
        schedule: A calendar event of systemd.time(7).
        system: As in :func:`service`.

    Raises:
        UsageError: if the schedule cannot be written in a unit.
    """
    lines = (
        *_head(unit_name(suite), "timer", system),
        "[Unit]",
        _description(suite),
        "",
        "[Timer]",
        f"OnCalendar={_specifiers(writable(schedule))}",
        "# A night that was slept through is made when the machine is up again.",
        "Persistent=true",
        f"RandomizedDelaySec={DELAY}",
        "",
        "[Install]",
        "WantedBy=timers.target",
    )
    return "\n".join(lines) + "\n"


def command(argv: Sequence[str]) -> str:
    """A command line that systemd takes apart into ``argv``, expanding nothing in it.

    Raises:
        UsageError: if a word cannot be written in a unit.
    """
    program, *words = argv
    if _NO_PROGRAM.search(program):
        # systemd starts no program of such a name; env does, but takes = for a variable.
        if "=" in program:
            raise UsageError(
                problem="systemd cannot start a program whose path holds both = and any of '\"\\$",
                where=program,
                way_out="Name a link to it, or move it.",
            )
        program, words = ENV, [program, *words]
    return " ".join((_word(program), *(_word(word).replace("$", "$$") for word in words)))


def assignment(name: str, value: str) -> str:
    """A line that sets a variable; in it, $ means nothing.

    Raises:
        UsageError: if the value cannot be written in a unit.
    """
    return f"Environment={_word(f'{name}={value}')}"


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    escaped = writable(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_specifiers(escaped)}"'


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


def _folder(path: Path) -> str:
    """A path to the line's end, which knows no quotes; the slash keeps what stands before it."""
    return _specifiers(writable(f"{path}/"))


def _env_file(path: Path) -> str:
    """Likewise, but the name is a pattern."""
    return _specifiers(writable(glob.escape(str(path))))


def writable(text: str) -> str:
    """``text``, which stands on one line of a unit or a crontab.

    Raises:
        UsageError: if it cannot: a line's end in a path would begin a line of its own.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        why = "it is no UTF-8"
    else:
        if not _CONTROL.search(text):
            return text
        why = "it holds a control character"
    raise UsageError(
        problem=f"{why}, which a unit file or a crontab cannot hold",
        where=ascii(text)[1:-1],
        way_out="Rename it, or name a link to it.",
    )


def _description(suite: str) -> str:
    return f"Description=eagleops nightly checks, suite {_quoted(suite)}"


def _head(name: str, kind: str, system: bool) -> tuple[str, ...]:
    edit = f"systemctl {'' if system else '--user '}edit {name}.{kind}"
    return (
        "# Written by `eagleops nightly --install-timer`, and again by the next one.",
        f"# What is your own belongs in a drop-in: {edit}",
    )
