"""One client at a time does its nightly checks on a machine: the lock over there."""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import attrs

from eagleops.errors import EagleError, OperationFailed, TimedOut
from eagleops.machine import Machine
from eagleops.remote import process_table
from eagleops.workflows.nightly.holder import Holder, living

# The kind of failure that tells of another holder.
HELD = "held"
# A lock that is free is had at once; one that is handed over, within five seconds.
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
        nights: The folder that the suite's nights are kept in, as the next one is told too.

    Raises:
        OperationFailed: of the kind ``held`` while somebody else holds it: who, what for, and
            since when stand in its message and, as ``holder``, in its data.
        Unreachable: if the machine cannot be reached.
    """
    answers: queue.SimpleQueue[Hold | BaseException] = queue.SimpleQueue()
    done = threading.Event()
    where = f" ({nights})" if nights else ""
    facts = {
        "name": f"{process_table.user(os.geteuid())}@{socket.gethostname()}",
        "purpose": f"nightly checks, suite {suite}{where}",
        "client": Holder.new().name,
    }
    follower = threading.Thread(
        target=_follow, args=(machine, facts, answers, done), name="hold", daemon=True
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
    facts: Mapping[str, Any],
    answers: queue.SimpleQueue[Hold | BaseException],
    done: threading.Event,
) -> None:
    """Reads what the operation yields, so that neither end waits for the other."""
    hold: Hold | None = None
    try:
        with living(facts["client"]), contextlib.closing(_ticks(machine, facts)) as ticks:
            for since_utc in ticks:
                if hold is None:
                    hold = Hold(since_utc)
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


def _ticks(machine: Machine, facts: Mapping[str, Any]) -> Generator[str, None, None]:
    """Holds it, taking over where the holder is known to have ended on this computer."""
    try:
        yield from _hold(machine, facts, "")
    except OperationFailed as refusal:
        before = (refusal.data.get("holder") or {}).get("client") or ""
        holder = Holder.parse(before)
        if refusal.kind != HELD or holder is None or not holder.has_ended():
            raise
        yield from _hold(machine, facts, before)


def _hold(machine: Machine, facts: Mapping[str, Any], take_over: str) -> Iterator[str]:
    since_utc = ""
    with (
        machine.session() as session,
        contextlib.closing(session.stream("hold", **facts, take_over=take_over)) as events,
    ):
        for event in events:
            since_utc = event.get("since_utc", since_utc)
            if since_utc:
                yield since_utc
