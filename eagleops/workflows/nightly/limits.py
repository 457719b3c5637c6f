"""What ends a night early: its time limit, and a person who interrupts it."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Literal, TypeVar, cast

import attrs

Reason = Literal["time_limit", "interrupted"]
T = TypeVar("T")
POLL_S = 0.1
# What may end a program by a word from outside.
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.define(eq=False, slots=False)
class Ended(BaseException):
    """The night is over for whoever looks at a host.

    No ``Exception``: nothing that goes on after an error must go on after this.
    """

    reason: Reason


@attrs.define(eq=False)
class Limits:
    """One night's, for all its threads.

    Attributes:
        limit_s: The night's, in seconds from its begin or its taking up.
        interruption: Set once somebody ended the night; ``hurry`` once he did so again.
    """

    limit_s: float
    _began_s: float = attrs.field(factory=time.monotonic, init=False)
    interruption: threading.Event = attrs.field(factory=threading.Event, init=False)
    hurry: threading.Event = attrs.field(factory=threading.Event, init=False)

    def interrupt(self) -> None:
        """Ends the night; again, it ends even what puts the hosts right."""
        if self.interruption.is_set():
            self.hurry.set()
        self.interruption.set()

    @property
    def interrupted(self) -> bool:
        """Whether somebody ended it."""
        return self.interruption.is_set()

    @property
    def left_s(self) -> float:
        """What is left of the limit, in seconds; never below zero."""
        return max(0.0, self._began_s + self.limit_s - time.monotonic())

    def watch(self) -> Watch:
        """A watch for the thread that calls."""
        return Watch(self)


@attrs.define(eq=False)
class Watch:
    """The limits as one thread feels them: a machine's pulse (:class:`eagleops.machine.Machine`).

    A machine's other threads (telemetry, the lock) end by themselves, and feel nothing.
    """

    limits: Limits
    _thread: int = attrs.field(factory=threading.get_ident, init=False)
    _shielded: bool = attrs.field(default=False, init=False)

    def __call__(self) -> None:
        """Ends the thread's work where the night is over.

        Raises:
            Ended: then.
        """
        if threading.get_ident() != self._thread:
            return
        if self.limits.hurry.is_set():
            raise Ended("interrupted")
        if self._shielded:
            return
        if self.limits.interrupted:
            raise Ended("interrupted")
        if not self.limits.left_s:
            raise Ended("time_limit")

    @contextlib.contextmanager
    def shielded(self) -> Iterator[None]:
        """Lets what puts a host right go on past the limit and one Ctrl-C."""
        before, self._shielded = self._shielded, True
        try:
            yield
        finally:
            self._shielded = before

    def beside(self, work: Callable[[], T]) -> T:
        """Does work that feels no pulse, on a thread of its own, and returns what it gives.

        Where the night is over the thread is left behind: whoever ends what it waits for (a
        server, say) ends it too, and nobody hears what became of it.

        Raises:
            Ended: if the night is over first.
            BaseException: what the work raised.
        """
        answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

        def run() -> None:
            try:
                answers.put((work(), None))
            except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
                answers.put((None, error))

        threading.Thread(target=run, name="nightly, beside", daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                answer, error = answers.get(timeout=POLL_S)
                if error is not None:
                    raise error
                return cast("T", answer)
            self()

    def pause(self, seconds: float) -> None:
        """Waits, and no longer than the night lasts.

        Raises:
            Ended: if it is over.
        """
        over = self.limits.hurry if self._shielded else self.limits.interruption
        self()
        limit_s = seconds if self._shielded else min(seconds, self.limits.left_s)
        over.wait(limit_s)
        self()


@contextlib.contextmanager
def interruptions() -> Iterator[list[int]]:
    """Gathers meanwhile, in the list that it gives, the signals that would raise a Ctrl-C.

    Raised, one that comes while another is dealt with would end that too. Only a main thread
    hears of any.
    """
    heard: list[int] = []

    def gathered(before: Callable[[int, FrameType | None], object]) -> Callable[..., None]:
        def handle(number: int, frame: FrameType | None) -> None:
            try:
                before(number, frame)
            except KeyboardInterrupt:
                heard.append(number)

        return handle

    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    found = {number: signal.getsignal(number) for number in ENDINGS}
    handlers = {number: one for number, one in found.items() if callable(one)}
    for number, handler in handlers.items():
        signal.signal(number, gathered(handler))
    try:
        yield heard
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
