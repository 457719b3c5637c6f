"""The one error tree of eagleops.

.. code-block:: text

    EagleError
    ├── UsageError              2  before anything was touched
    │   ├── InventoryError         hosts.yaml: file, line, key
    │   ├── ProfileError           a profile, or a value in it
    │   └── NoSuchRun              the ledger knows no run of that number
    ├── Unreachable             4  a machine could not be reached, or was lost
    │   ├── ConnectFailed          no connection was made
    │   ├── HostKeyRefused         the host key is unknown or has changed
    │   ├── NoInterpreter          the machine was reached, its python3 was not
    │   ├── TimedOut               no answer within the limit; the outcome is unknown
    │   └── LinkLost               the link broke; the outcome is unknown
    ├── CheckFailed             1  the machine answered, and the answer is no
    │   ├── OperationFailed        an operation over there reported a typed failure
    │   ├── NotDrained             GPU memory was not released in time
    │   ├── ServerDied             a server ended before it was ready
    │   ├── ServerNotReady         a server was not ready in time
    │   └── RequestFailed          a server refused a request, or broke its answer off
    ├── LedgerError             1  the ledger cannot be read or written
    │   └── LedgerDamaged          its file was damaged, and was set aside
    ├── NightsError             1  the nights beside the ledger cannot be read or written
    │   ├── NightsHeld             another process runs this suite of nightly checks
    │   └── ReportsNotWritten      of a night's reports some could not be written
    ├── CannotTell              3  a witness was blind
    └── Interrupted           130  somebody pressed Ctrl-C

The number is the exit status of a command that ends in that error. Each error
holds its data; the sentence is derived from it: where, what, and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs


@attrs.define(eq=False, slots=False, kw_only=True)
class EagleError(Exception):
    """The root of the tree.

    Attributes:
        problem: What is wrong, with what was expected and what was got.
        where: File and line, or host, container and PID. Empty where there is no place.
        way_out: What the reader can do now. Empty where nothing helps.
    """

    exit_status: ClassVar[int] = 1

    problem: str
    where: str = ""
    way_out: str = ""

    def __str__(self) -> str:
        head = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{head}\n{self.way_out}" if self.way_out else head

    @property
    def in_a_line(self) -> str:
        """The error's sentences in one line, where there is room for no more."""
        told = [" ".join(line.split()) for line in str(self).splitlines() if line.strip()]
        return " ".join([*(s if s[-1] in ".:!?" else f"{s}." for s in told[:-1]), *told[-1:]])

    def to_dict(self) -> dict[str, Any]:
        """The error as the ``error`` object of a ``--json`` document."""
        fields = attrs.asdict(self, recurse=False)
        return {"type": type(self).__name__, **{k: v for k, v in fields.items() if v != ""}}


@attrs.define(eq=False, slots=False, kw_only=True)
class UsageError(EagleError):
    """A command, an inventory or a profile is wrong; nothing was touched."""

    exit_status: ClassVar[int] = 2


@attrs.define(eq=False, slots=False, kw_only=True)
class InventoryError(UsageError):
    """hosts.yaml cannot be read as an inventory.

    Attributes:
        file: The file as it was named.
        line: 1-based; None where no line can be named.
        key: Dotted path of the key, for example ``hosts.pve.python``.
        more: What else is wrong in the file, a sentence each.
    """

    file: str = ""
    line: int | None = None
    key: str = ""
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((super().__str__(), *self.more))


@attrs.define(eq=False, slots=False, kw_only=True)
class ProfileError(UsageError):
    """A profile does not describe a server that can be launched."""

    profile: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class NoSuchRun(UsageError):
    """The ledger knows no run of that number, or several by that beginning of a name."""

    run: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class Unreachable(EagleError):
    """A machine could not be reached, or was lost."""

    exit_status: ClassVar[int] = 4

    host: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class ConnectFailed(Unreachable):
    """No connection was made: nothing ran over there."""


@attrs.define(eq=False, slots=False, kw_only=True)
class HostKeyRefused(Unreachable):
    """The server's host key is unknown, or not the one that is on record."""

    fingerprint: str = ""
    expected_fingerprint: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class NoInterpreter(Unreachable):
    """The machine was reached, but its python3 did not answer."""

    exit_status_seen: int | None = None
    output: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class TimedOut(Unreachable):
    """No answer came within the limit: what ran over there may still run."""

    limit_s: float = 0.0


@attrs.define(eq=False, slots=False, kw_only=True)
class LinkLost(Unreachable):
    """The link broke while something ran: its outcome is unknown, never "failed"."""


@attrs.define(eq=False, slots=False, kw_only=True)
class CheckFailed(EagleError):
    """The machine answered, and the answer is no."""

    host: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class OperationFailed(CheckFailed):
    """An operation of the remote package ended in one of its typed failures.

    Attributes:
        kind: The failure's stable name, for example ``port_taken``.
        data: Its facts, as JSON.
    """

    kind: str = ""
    data: dict[str, Any] = attrs.field(factory=dict)


@attrs.define(eq=False, slots=False, kw_only=True)
class NotDrained(CheckFailed):
    """GPU memory was not released within the limit.

    Attributes:
        report: The drain's last reading, as JSON: each GPU and who still holds what.
    """

    report: dict[str, Any] = attrs.field(factory=dict)


@attrs.define(eq=False, slots=False, kw_only=True)
class ServerDied(CheckFailed):
    """A server ended before it was ready.

    Attributes:
        server: Its name.
        process_exit_status: None where a signal ended it.
        signal: Its name, for example ``SIGKILL``.
        cause: The known cause that its log shows, or an empty string.
        log_tail: The last lines of its log.
    """

    server: str = ""
    process_exit_status: int | None = None
    signal: str | None = None
    cause: str = ""
    log_tail: tuple[str, ...] = ()


@attrs.define(eq=False, slots=False, kw_only=True)
class ServerNotReady(CheckFailed):
    """A server lives but was not ready within the limit."""

    server: str = ""
    log_tail: tuple[str, ...] = ()


@attrs.define(eq=False, slots=False, kw_only=True)
class RequestFailed(CheckFailed):
    """A server refused a request, did not answer it, or broke its answer off.

    Attributes:
        status: The HTTP status; None where none came.
    """

    status: int | None = None


@attrs.define(eq=False, slots=False, kw_only=True)
class LedgerError(EagleError):
    """The ledger cannot be read or written; what stood in it before still does.

    Attributes:
        file: The database.
    """

    file: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class LedgerDamaged(LedgerError):
    """The ledger's file was damaged: it was given another name, and nothing of it is lost.

    Attributes:
        set_aside: Its new name.
    """

    set_aside: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class NightsError(EagleError):
    """The nights beside the ledger cannot be read or written; what stood there before still does.

    Attributes:
        file: The night's file, or their folder.
    """

    file: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class NightsHeld(NightsError):
    """Another process runs this suite of nightly checks; nothing was touched.

    Attributes:
        pid: Its PID; None where it has not said so yet.
        user: Who started it.
        client: On which machine: PIDs are that one's.
        since_utc: Since when, RFC 3339.
    """

    pid: int | None = None
    user: str = ""
    client: str = ""
    since_utc: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class ReportsNotWritten(NightsError):
    """Of a night's reports some could not be written; the night is kept, and the others stand.

    Attributes:
        written: The place of each that was, by its kind.
    """

    written: Mapping[str, str] = attrs.field(factory=dict)


@attrs.define(eq=False, slots=False, kw_only=True)
class CannotTell(EagleError):
    """A witness was blind: neither yes nor no."""

    exit_status: ClassVar[int] = 3

    host: str = ""


@attrs.define(eq=False, slots=False, kw_only=True)
class Interrupted(EagleError):
    """Ctrl-C ended a command. Python code gets its KeyboardInterrupt; this is the document's."""

    exit_status: ClassVar[int] = 130
