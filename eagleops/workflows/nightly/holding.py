"""One client at a time does its nightly checks on a machine: the lock over there."""

from __future__ import annotations

import contextlib
import getpass
import queue
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

from eagleops.errors import EagleError, OperationFailed, TimedOut
from eagleops.machine import Machine

# A lock that is free is had at once; that of a session of one's own which lost its link is
# handed over within five seconds.
LIMIT_S = 30.0
LET_GO_S = 10.0


@attrs.define(eq=False)
class Hold:
    """A machine that is held.

    Attributes:
        since_utc: By the machine's clock.
        lost: What ended the hold before its time; None while it lasts.
    """

    since_utc: str
    lost: EagleError | None = None

    def check(self) -> None:
        """Does nothing while the machine is held.

        Raises:
            EagleError: what ended the hold.
        """
        if self.lost is not None:
            raise self.lost


@contextlib.contextmanager
def held(machine: Machine, suite: str, *, nights: str = "") -> Iterator[Hold]:
    """Holds ``machine`` for the ``with`` block, in a session of its own.

    Args:
        machine: Which.
        suite: The suite, as the next one who wants the machine is told.
        nights: The folder that the suite's nights are kept in: of one folder one process runs a
            suite at a time, so that a hold of the same client and folder is one whose link died.

    Raises:
        OperationFailed: of the kind ``held`` while somebody else holds it: who, what for, and
            since when stand in its message and, as ``holder``, in its data.
        Unreachable: if the machine cannot be reached.
    """
    answers: queue.SimpleQueue[Hold | BaseException] = queue.SimpleQueue()
    done = threading.Event()
    follower = threading.Thread(
        target=_follow, args=(machine, suite, nights, answers, done), name="hold", daemon=True
    )
    follower.start()
    try:
        yield _first(machine, answers)
    finally:
        done.set()
        follower.join(LET_GO_S)


def _first(machine: Machine, answers: queue.SimpleQueue[Hold | BaseException]) -> Hold:
    try:
        answer = answers.get(timeout=LIMIT_S)
    except queue.Empty:
        raise TimedOut(
            problem=f"hold: no answer within {LIMIT_S:g} s",
            where=machine.where,
            way_out="Look before you act: eagleops status.",
            host=machine.name,
            limit_s=LIMIT_S,
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _follow(
    machine: Machine,
    suite: str,
    nights: str,
    answers: queue.SimpleQueue[Hold | BaseException],
    done: threading.Event,
) -> None:
    """Reads what the operation yields, so that neither end waits for the other."""
    hold: Hold | None = None
    here = f"{getpass.getuser()}@{socket.gethostname()}"
    stream = machine.stream(
        "hold",
        name=here,
        purpose=f"nightly checks, suite {suite}",
        client=f"{here} {_machine_id()} {suite} {nights}",
    )
    try:
        for event in stream:
            if event["event"] == "held":
                hold = Hold(event["since_utc"])
                answers.put(hold)
            if done.is_set():
                return
    except Exception as error:  # noqa: BLE001 - it is raised where it was asked for
        if hold is None:
            answers.put(error)
        elif isinstance(error, EagleError):
            hold.lost = error
        else:
            hold.lost = OperationFailed(problem=f"hold: {error}", where=machine.where)
    finally:
        stream.close()  # type: ignore[attr-defined]


def _machine_id() -> str:
    """What tells this client from another of the same name: machine-id(5)."""
    try:
        return Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
