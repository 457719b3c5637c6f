"""The resident interpreter: reads requests, runs one operation at a time, writes events.

Both directions are JSON lines in ASCII; undecodable bytes travel as lone surrogates, so
every argv and environment value that exec allows survives. After a first line with the
session's options come requests::

    {"id": 1, "op": "drain", "args": {...}, "time_limit_s": 60}
    {"cancel": 1}

and each request is answered by any number of events, the last of them ``done`` or ``error``::

    {"id": 1, "event": "alive"}
    {"id": 1, "event": "gpus", ...}
    {"id": 1, "event": "done", "result": {...}}
    {"id": 1, "event": "error", "kind": "port_taken", "message": "...", "way_out": "", "data": {}}

``alive`` comes each second while an operation runs, so that a client tells a slow
operation from a dead link. The process ends with its stdin.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import sys
import threading
import traceback
from typing import IO, Any, Callable, Dict, Optional, Set

from eagleops.remote.context import Context
from eagleops.remote.failure import Cancelled, Failure
from eagleops.remote.operations import operation

PROTOCOL = 1
ALIVE_INTERVAL_S = 1.0
# An operation that does not notice the end of stdin (a driver call that hangs) is left
# behind after this long.
GRACE_S = 5.0

Emit = Callable[[Dict[str, Any]], None]


class Runtime:
    """One session's process."""

    def __init__(self, requests: IO[bytes], events: IO[bytes]) -> None:
        self._requests = requests
        self._events = events
        self._write_lock = threading.Lock()
        self._pending: "queue.Queue[Optional[Dict[str, Any]]]" = queue.Queue()
        self._running: Optional[Context] = None
        self._running_id: Optional[int] = None
        # A request may be called off before it has begun.
        self._called_off: Set[int] = set()

    def serve(self) -> None:
        """Serves requests until stdin ends."""
        options = json.loads(self._requests.readline())
        self._emit(
            {
                "event": "hello",
                "protocol": PROTOCOL,
                "python": platform.python_version(),
                "pid": os.getpid(),
            }
        )
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._keep_alive, daemon=True).start()
        while True:
            request = self._pending.get()
            if request is None:
                return
            self._answer(request, options)

    def _emit(self, event: Dict[str, Any]) -> None:
        line = json.dumps(event, separators=(",", ":")).encode("ascii") + b"\n"
        with self._write_lock:
            try:
                self._events.write(line)
                self._events.flush()
            except OSError:  # the client is gone; _read sees the end of stdin
                self._cancel_running()

    def _read(self) -> None:
        for line in iter(self._requests.readline, b""):
            message = json.loads(line)
            if "cancel" in message:
                self._called_off.add(message["cancel"])
                if message["cancel"] == self._running_id:
                    self._cancel_running()
            else:
                self._pending.put(message)
        self._pending.put(None)
        self._cancel_running()
        threading.Event().wait(GRACE_S)
        os._exit(0)

    def _cancel_running(self) -> None:
        running = self._running
        if running is not None:
            running.cancel()

    def _keep_alive(self) -> None:
        pause = threading.Event()
        while not pause.wait(ALIVE_INTERVAL_S):
            running_id = self._running_id
            if running_id is not None:
                self._emit({"id": running_id, "event": "alive"})

    def _answer(self, request: Dict[str, Any], options: Dict[str, Any]) -> None:
        context = Context(options, request.get("time_limit_s"))
        self._running, self._running_id = context, request["id"]
        if request["id"] in self._called_off:
            context.cancel()
        try:
            last = self._run(request, context)
        finally:
            self._running = self._running_id = None
        try:
            self._emit(dict(last, id=request["id"]))
        except (TypeError, ValueError) as error:
            problem = "the result is no JSON: {}".format(error)
            self._emit(dict(_error("internal", problem), id=request["id"]))

    def _run(self, request: Dict[str, Any], context: Context) -> Dict[str, Any]:
        try:
            steps = operation(request["op"])(context, **request.get("args", {}))
            # Closed before the last word is said: what it must tidy up is tidied up by then.
            with contextlib.closing(steps):
                context.check()
                while True:
                    try:
                        event = next(steps)
                    except StopIteration as end:
                        return {"event": "done", "result": end.value}
                    self._emit(dict(event, id=request["id"]))
                    context.check()
        except Cancelled:
            return _error("cancelled", "the operation was called off")
        except Failure as failure:
            return _error(failure.kind, failure.message, failure.way_out, failure.data)
        except Exception as error:  # noqa: BLE001 - whatever broke, the client is told
            data = {"traceback": traceback.format_exc()}
            return _error("internal", "{}: {}".format(type(error).__name__, error), "", data)


def _error(
    kind: str, message: str, way_out: str = "", data: Optional[Dict[str, Any]] = None
) -> Dict[str, Any]:
    return {
        "event": "error",
        "kind": kind,
        "message": message,
        "way_out": way_out,
        "data": data or {},
    }


def main() -> None:
    """Serves the client at the other end of stdin and stdout, then ends."""
    # What an operation or its child prints must not look like an event.
    events = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    Runtime(sys.stdin.buffer, events).serve()
    # The reader thread may hold stdin's lock: a regular exit would wait for it.
    os._exit(0)
