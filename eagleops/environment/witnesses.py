"""What each witness says of one variable in one process."""

from __future__ import annotations

from typing import Literal, Protocol

import attrs

from eagleops.environment.values import Value

InitialState = Literal["whole", "partly_overwritten", "overwritten", "empty", "unreadable"]


@attrs.frozen
class Initial:
    """``/proc/PID/environ``: what exec gave the process. Blind to every later change.

    Attributes:
        state: Only a ``whole`` block says by a name's absence that it was not given.
        value: None where it does not stand there.
        why: Why it cannot be read.
        overwritten_bytes, size: How much of the block was written over.
    """

    state: InitialState = "whole"
    value: Value | None = None
    why: str = ""
    overwritten_bytes: int = 0
    size: int = 0

    @property
    def sees(self) -> bool:
        """Whether it can tell what the process was started with."""
        return self.state == "whole" or self.value is not None


@attrs.frozen
class Ancestor:
    """A process above, whose own block can be read.

    Attributes:
        pid: Its PID.
        value: What it was started with; None for nothing.
    """

    pid: int
    value: Value | None


@attrs.frozen
class Live:
    """The C library's environment: what getenv finds now.

    Attributes:
        readable: False where its memory may not be read or makes no sense: then ``why`` and,
            where something helps, ``way_out``.
        value: None where it does not stand there.
        holder: The object that holds ``environ``.
    """

    readable: bool = True
    value: Value | None = None
    why: str = ""
    way_out: str = ""
    holder: str = ""


@attrs.frozen
class Effective:
    """NCCL's own log: what NCCL took, and what it then refused.

    Attributes:
        logged: Whether the log has lines of this process; without any, ``why``.
        path: The log.
        values: What NCCL read, each time it read it.
        number: Whether NCCL read it as a number.
        refusals: What NCCL said against it.
        started, complete: Number of ranks of each communicator that was begun, and made.
        peers: Other variables that NCCL read while making communicators.
        env_logged: Whether the log shows that NCCL_DEBUG_SUBSYS lets variables be named.
        version: NCCL's.
        cut: Whether a part of a long log was not read.
        loaded: Whether the process has NCCL at all; None where that is not known.
    """

    logged: bool = False
    why: str = ""
    path: str = ""
    values: tuple[str, ...] = ()
    number: bool = False
    refusals: tuple[str, ...] = ()
    started: tuple[int, ...] = ()
    complete: tuple[int, ...] = ()
    peers: tuple[str, ...] = ()
    env_logged: bool = False
    version: str = ""
    cut: bool = False
    loaded: bool | None = None

    @property
    def may_have_read(self) -> bool:
        """Whether NCCL may have read variables already, without a word in the log."""
        if self.logged:
            return bool(self.started or self.complete)
        return self.loaded is not False

    @property
    def communicators(self) -> int:
        """How many communicators of two or more ranks were made."""
        return sum(ranks > 1 for ranks in self.complete)


@attrs.frozen
class ConfSetting:
    """A conf file of NCCL's that sets the variable where nothing else does."""

    path: str
    value: Value


class Override(Protocol):
    """A variable that the engine sets by itself: :class:`eagleops.engines.overrides.Override`."""

    @property
    def name(self) -> str:
        """The variable."""

    @property
    def value(self) -> str | None:
        """What it is set to; None for a value that the engine makes up."""

    @property
    def forced(self) -> bool:
        """Whether it replaces a value that was set before."""

    def told(self, engine: str) -> str:
        """The override in words."""


@attrs.frozen
class Witnesses:
    """All that is known of one variable in one process.

    Attributes:
        name: The variable.
        ancestor: The nearest process above with a readable block; None where there is none.
        main: What the server's main process was started with; None where nobody can tell.
        conf: The conf file setting that NCCL would take first; None without one.
        overrides: What the engine is known to do to this variable.
        engine: Its name, for sentences.
    """

    name: str
    initial: Initial = Initial("unreadable")
    live: Live = Live(readable=False)
    effective: Effective = Effective()
    ancestor: Ancestor | None = None
    main: Ancestor | None = None
    conf: ConfSetting | None = None
    overrides: tuple[Override, ...] = ()
    engine: str = "the engine"
