"""A session: one resident interpreter on a target, asked one operation at a time.

The target's python3 is started once over a channel, is sent :mod:`eagleops.remote` over
stdin, and answers in JSON lines (:mod:`eagleops.remote.runtime` tells the protocol). An
operation costs one round trip; nothing is installed.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import attrs

from eagleops.errors import EagleError, LinkLost, OperationFailed, TimedOut
from eagleops.interpreter import Interpreter, as_line, start
from eagleops.transport.base import Transport
from eagleops.transport.deadline import Deadline
from eagleops.transport.lines import StreamEnded

# The remote side says "alive" each second while it works: so long a silence is a dead link.
SILENCE_S = 15.0
START_LIMIT_S = 30.0
# An operation's time limit is kept over there. One that hangs where nothing can interrupt it
# (a driver call) goes on saying "alive", and is given up here so long after its limit.
OVERRUN_S = 10.0
# How long an operation that was called off may take to end before the session is given up.
CALL_OFF_S = 5.0

_LOOK_FIRST = "Look before you act: eagleops status."

Event = Mapping[str, Any]
OnEvent = Callable[[Event], None]
Pulse = Callable[[], None]


def no_pulse() -> None:
    """Feels nothing."""


@attrs.define(eq=False)
class Session:
    """One resident interpreter. Safe for threads: operations wait for one another.

    Attributes:
        where: The target as messages name it.
    """

    where: str
    _interpreter: Interpreter
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
    _user: int | None = attrs.field(default=None, init=False)
    _next_id: int = attrs.field(default=1, init=False)
    _broken: bool = attrs.field(default=False, init=False)

    @classmethod
    def open(
        cls,
        transport: Transport,
        *,
        python: str = "python3",
        options: Mapping[str, Any] | None = None,
        timeout_s: float = START_LIMIT_S,
    ) -> Session:
        """Starts the interpreter and hands it the remote package.

        Args:
            transport: The way to the target.
            python: Its python3 (>= 3.8), a path or a name on its PATH.
            options: What to tell it of the machine, over
                :data:`eagleops.remote.context.DEFAULT_OPTIONS`.
            timeout_s: Limit in seconds from here to the interpreter's hello.

        Raises:
            NoInterpreter: if the machine was reached and no python3 >= 3.8 answered.
            Unreachable: as :meth:`Transport.open`, and ConnectFailed as
                :meth:`Transport.explain`.
        """
        interpreter = start(transport, python, options or {}, timeout_s)
        return cls(transport.where, interpreter)

    @property
    def python_version(self) -> str:
        """The interpreter's, for example ``3.11.7``."""
        return self._interpreter.python_version

    @property
    def pid(self) -> int:
        """The interpreter's, as the target counts."""
        return self._interpreter.pid

    @property
    def usable(self) -> bool:
        """False once the link was lost or the session was closed."""
        return not self._broken

    def call(
        self,
        op: str,
        *,
        time_limit_s: float | None = None,
        on_event: OnEvent | None = None,
        silence_s: float = SILENCE_S,
        pulse: Pulse = no_pulse,
        **args: Any,
    ) -> dict[str, Any]:
        """Runs one operation and returns its result.

        Args:
            op: A name in :data:`eagleops.remote.operations.OPERATIONS`.
            time_limit_s: Kept over there.
            on_event: Called with each event that the operation yields on its way.
            silence_s: How long the link may be silent before it counts as lost.
            pulse: Called with each sign of life, at least once a second, also of an operation
                that tells nothing. What it raises calls the operation off.
            args: The operation's arguments, as JSON.

        Raises:
            OperationFailed: the operation's own typed failure.
            TimedOut: nothing was heard for ``silence_s``, or no result long after
                ``time_limit_s``; the outcome is unknown.
            LinkLost: the link broke; the outcome is unknown.
        """
        stream = self.stream(
            op, time_limit_s=time_limit_s, silence_s=silence_s, pulse=pulse, **args
        )
        with contextlib.closing(stream):  # also where on_event raises
            for event in stream:
                if event["event"] == "done":
                    result: dict[str, Any] = event["result"]
                    return result
                if on_event is not None:
                    on_event(event)
        raise AssertionError("a stream ends with done or raises")

    def stream(
        self,
        op: str,
        *,
        time_limit_s: float | None = None,
        silence_s: float = SILENCE_S,
        pulse: Pulse = no_pulse,
        **args: Any,
    ) -> Generator[Event, None, None]:
        """Runs one operation and yields its events, ``done`` with its result as the last.

        A stream that is closed early calls the operation off over there.

        Raises:
            OperationFailed, TimedOut, LinkLost: as :meth:`call`.
        """
        with self._alone(op):
            number, self._next_id = self._next_id, self._next_id + 1
            self._send({"id": number, "op": op, "args": args, "time_limit_s": time_limit_s})
            limit = None if time_limit_s is None else time_limit_s + OVERRUN_S
            deadline = Deadline.after(limit)
            ended = False
            try:
                while not ended:
                    event = self._next(op, number, silence_s, deadline)
                    ended = event["event"] == "done"
                    if not ended:
                        pulse()
                    if event["event"] != "alive":
                        yield event
            except OperationFailed:
                raise  # the operation has ended, in its own words
            except GeneratorExit:
                if not ended:
                    self._call_off(number, op)
                raise
            except BaseException:
                # Whatever came in between (Ctrl-C, an error of the caller's): the rest of
                # this operation's answer must not be taken for the next one's.
                if not ended:
                    self.close()
                raise

    def close(self) -> None:
        """Ends the interpreter over there, and with it whatever operation it runs."""
        self._broken = True
        self._interpreter.channel.close()

    @contextlib.contextmanager
    def _alone(self, op: str) -> Iterator[None]:
        if self._user == threading.get_ident():
            raise RuntimeError(f"{op}: this thread's last stream over the session has not ended")
        with self._lock:
            self._user = threading.get_ident()
            try:
                yield
            finally:
                self._user = None

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._broken:
            raise LinkLost(problem="the session has ended", where=self.where, host=self.where)
        try:
            self._interpreter.channel.send(as_line(message))
        except EagleError:
            self.close()
            raise

    def _next(self, op: str, number: int, silence_s: float, deadline: Deadline) -> Event:
        event = self._receive(op, number, silence_s)
        if event["event"] == "error":
            raise self._failure(event)
        if event["event"] == "alive" and deadline.passed:
            raise self._overrun(op, (deadline.limit_s or 0.0) - OVERRUN_S)
        return event

    def _receive(self, op: str, number: int, silence_s: float) -> dict[str, Any]:
        try:
            event: dict[str, Any] = json.loads(self._interpreter.lines.line(silence_s))
        except TimedOut as silence:
            self.close()
            raise TimedOut(
                problem=f"{op}: nothing was heard for {silence_s:g} s, the outcome is unknown",
                where=self.where,
                way_out=_LOOK_FIRST,
                host=self.where,
                limit_s=silence_s,
            ) from silence
        except StreamEnded as end:
            raise self._lost(op, self._interpreter.epitaph()) from end
        except LinkLost as lost:
            raise self._lost(op, "the link was lost") from lost
        # "alive" of the last operation may come after its end.
        return event if event["id"] == number else {"event": "alive"}

    def _lost(self, op: str, how: str) -> LinkLost:
        self.close()
        return LinkLost(
            problem=f"{op}: {how}, the outcome is unknown",
            where=self.where,
            way_out=_LOOK_FIRST,
            host=self.where,
        )

    def _overrun(self, op: str, time_limit_s: float) -> TimedOut:
        return TimedOut(
            problem=f"{op}: no result {OVERRUN_S:g} s after its limit of {time_limit_s:g} s: it "
            "hangs where nothing can interrupt it (a driver call?); the outcome is unknown",
            where=self.where,
            way_out=_LOOK_FIRST,
            host=self.where,
            limit_s=time_limit_s,
        )

    def _failure(self, event: Event) -> OperationFailed:
        return OperationFailed(
            problem=event["message"],
            where=self.where,
            way_out=event["way_out"],
            host=self.where,
            kind=event["kind"],
            data=event["data"],
        )

    def _call_off(self, number: int, op: str) -> None:
        """Waits until the operation has ended, or gives up the session with it."""
        deadline = Deadline.after(CALL_OFF_S)
        with contextlib.suppress(EagleError):
            self._send({"cancel": number})
            while not deadline.passed:
                event = self._receive(op, number, deadline.remaining_s() or 0.0)
                if event["event"] in {"done", "error"}:
                    return
        self.close()
