"""Operation ``watch``: follows a starting server until it is ready, dead, or time is up.

Ready means: it says so itself, on a port that nobody else listens on, and serves the model
that was asked for. An old server on the same port would answer just as readily.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Deque, Dict, Generator, List, Optional, Set

from eagleops.remote import listeners, server_record
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.log_lines import LogFollower, readable
from eagleops.remote.readiness import Prober, ready_by_age
from eagleops.remote.server_record import Record
from eagleops.remote.server_tree import living_tree
from eagleops.remote.servers import describe, find_record, note_ready

Events = Generator[Dict[str, Any], None, Dict[str, Any]]

TICK_S = 0.03
# Left of the request's time limit for the answer, on a machine that has better things to do.
RESERVE_S = 0.2
# While an answer is awaited, and no longer than answers usually take.
ANSWER_TICK_S, ANSWER_S = 0.005, 0.25
# Between two looks at the port, and so between two questions.
LOOK_S = 0.06
TAIL_LINES = 400
# From the main process's end to its record: the supervisor's waitpid and one fsync.
EXIT_RECORD_S = 3.0
# A socket that changes hands, or a worker younger than the look at the tree, is no stranger.
STRANGER_LOOKS = 3


def watch(
    context: Context, name: str, timeout_s: Optional[float] = None, log_lines: int = 40
) -> Events:
    """Follows the server ``name``.

    Args:
        context: The operation's surroundings; less time than ``timeout_s`` left shortens it.
        name: The server's.
        timeout_s: When to give up; that is a result, and the server lives on.
        log_lines: How many lines a ``log`` event holds at most: the last ones.

    Raises:
        Failure: ``no_such_server``; ``port_shared`` if a stranger listens on its port;
            ``wrong_model`` if it serves another model than the profile's.
    """
    watcher = Watcher(context, find_record(context, name), log_lines)
    return (yield from watcher.run(timeout_s))


class Watcher:
    """One server that is being watched."""

    def __init__(self, context: Context, record: Record, log_lines: int) -> None:
        self._context = context
        self._record = record
        self._log_lines = log_lines
        self._log = LogFollower(record.log)
        self._tail: Deque[bytes] = deque(maxlen=TAIL_LINES)
        self._readiness: Optional[Dict[str, Any]] = record.spec.get("readiness")
        self._prober = Prober(self._readiness or {})
        self._own: Set[int] = set()
        self._strange_looks = 0
        self._looked_s = float("-inf")
        self._detail = ""
        self._remark = ""

    def run(self, timeout_s: Optional[float]) -> Events:
        """Yields ``log`` and ``state`` events until there is an outcome."""
        context, record = self._context, self._record
        own_limit_s = float("inf") if timeout_s is None else timeout_s
        limit_s = min(own_limit_s, context.remaining_s() - RESERVE_S)
        deadline = time.monotonic() + limit_s
        told = ""
        while True:
            dead = record.exit is not None or record.main() is None
            yield from self._log_event(self._log.read())
            if dead:
                return (yield from self._died())
            if record.ready is not None:
                return self._result("ready", record.ready["ready_s"], self._remark)
            if self._is_ready():
                ready_s = round(record.age_s(), 3)
                note_ready(record, ready_s, self._remark)
                yield self._state_event("ready", self._remark)
                return self._result("ready", ready_s, self._remark)
            if self._detail != told:
                told = self._detail
                yield self._state_event("starting", told)
            if time.monotonic() >= deadline:
                return self._result("timeout", None, self._detail)
            context.sleep(
                max(0.0, min(self._tick_s(), deadline - time.monotonic(), _left(context)))
            )

    def _tick_s(self) -> float:
        soon = time.monotonic() - self._looked_s < ANSWER_S
        return ANSWER_TICK_S if soon and not self._prober.idle else TICK_S

    def _died(self) -> Events:
        record = self._record
        yield self._state_event("exited", "")
        record.await_exit(min(EXIT_RECORD_S, _left(self._context)))
        yield from self._log_event(self._log.finish())
        return self._result("died", None, self._end())

    def _end(self) -> str:
        end = self._record.reread_exit()
        if end is None:
            return "it ended, and nothing recorded how"
        asked = ", after it was asked to stop" if self._record.stopping else ""
        if end["signal"]:
            return "ended by {}{}".format(end["signal"], asked)
        return "ended with status {}{}".format(end["exit_status"], asked)

    def _is_ready(self) -> bool:
        if self._readiness is None:
            return ready_by_age(self._record.age_s())
        if self._prober.idle:
            if time.monotonic() >= self._looked_s + LOOK_S:
                self._looked_s = time.monotonic()
                addresses = self._own_addresses()
                if addresses:
                    self._prober.start(addresses)
            return False
        answer = self._prober.take()
        if answer is None:
            return False
        if answer.models is not None:
            raise self._wrong_model(answer.models)
        self._detail = answer.detail
        if not answer.ready:
            return False
        # Asked again after the answer, and without what was known before it.
        self._own.clear()
        self._remark = answer.detail
        return bool(self._own_addresses()) and self._record.main() is not None

    def _own_addresses(self) -> List[str]:
        """Where to ask; empty while nothing listens.

        Raises:
            Failure: ``port_shared``.
        """
        assert self._readiness is not None  # noqa: S101 - for the type checker
        port = self._readiness["port"]
        found = listeners.on_port(port, self._record.process["pid"])
        if not found:
            self._detail = "nothing listens on port {} yet".format(port)
        unknown = [listener for listener in found if listener.inode not in self._own]
        strangers = listeners.strangers(unknown, living_tree(self._record)) if unknown else []
        if strangers:
            self._strange_looks += 1
            if self._strange_looks >= STRANGER_LOOKS:
                raise self._port_shared(strangers[0])
            return []
        self._strange_looks = 0
        self._own.update(listener.inode for listener in found)
        return listeners.reachable(found)

    def _port_shared(self, stranger: listeners.Listener) -> Failure:
        facts = listeners.describe(stranger)
        return Failure(
            "port_shared",
            "{} listens on port {} too: what answers there may not be {}".format(
                listeners.sentence(facts), facts["port"], self._record.name
            ),
            way_out="End it, then stop {0} and launch it again (eagleops stop --name {0}).".format(
                self._record.name
            ),
            **facts,
        )

    def _wrong_model(self, models: List[str]) -> Failure:
        assert self._readiness is not None  # noqa: S101 - for the type checker
        expected = self._readiness["identity"]["equals"]
        return Failure(
            "wrong_model",
            "{} serves {}, expected {}".format(self._record.name, ", ".join(models), expected),
            way_out="Compare the profile's model with its arguments.",
            expected=expected,
            seen=models,
            port=self._readiness["port"],
        )

    def _log_event(self, lines: List[bytes]) -> Generator[Dict[str, Any], None, None]:
        if lines:
            self._tail.extend(lines)
            shown = lines[-self._log_lines :] if self._log_lines > 0 else []
            yield {
                "event": "log",
                "lines": [readable(line) for line in shown],
                "skipped": len(lines) - len(shown),
            }

    def _state_event(self, state: str, detail: str) -> Dict[str, Any]:
        elapsed_s = round(self._record.age_s(), 3) if self._record.here else None
        return {"event": "state", "state": state, "detail": detail, "elapsed_s": elapsed_s}

    def _result(self, outcome: str, ready_s: Optional[float], detail: str) -> Dict[str, Any]:
        # Read anew: state, exit and tree are those of the outcome.
        record = server_record.read(self._context, self._record.name) or self._record
        return {
            "outcome": outcome,
            "ready_s": ready_s,
            "server": describe(record),
            "log_tail": [readable(line) for line in self._tail],
            "detail": detail,
        }


def _left(context: Context) -> float:
    # The last moment belongs to the answer: context.sleep would end the operation instead.
    return max(0.0, context.remaining_s() - TICK_S)
