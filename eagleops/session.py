"""A session: one resident interpreter on a target, asked one operation at a time.

The target's python3 is started once over a channel, is sent :mod:`eagleops.remote` over
stdin, and answers in JSON lines (:mod:`eagleops.remote.runtime` tells the protocol). An
operation costs one round trip; nothing is installed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any

import attrs

from eagleops.errors import EagleError, LinkLost, NoInterpreter, OperationFailed, TimedOut
from eagleops.transport.base import Channel, Transport

# The remote side says "alive" each second while it works: so long a silence is a dead link.
SILENCE_S = 15.0
START_LIMIT_S = 30.0

Event = Mapping[str, Any]
OnEvent = Callable[[Event], None]

# Runs over there: serves the sent sources as modules, then hands over to the runtime.
_LOADER = """
import importlib.abc, importlib.util, linecache, sys
class _Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return importlib.util.spec_from_loader(name, self, is_package=name in PACKAGES)
    def is_package(self, name):
        return name in PACKAGES
    def get_source(self, name):
        return SOURCES[name]
    def exec_module(self, module):
        name = module.__spec__.name
        file = "<" + name + ">"
        linecache.cache[file] = (len(SOURCES[name]), None, SOURCES[name].splitlines(True), file)
        exec(compile(SOURCES[name], file, "exec"), module.__dict__)
sys.meta_path.insert(0, _Sources())
from eagleops.remote.runtime import main
main()
"""


@functools.cache
def bundle() -> bytes:
    """The remote package as one compressed program."""
    folder = resources.files("eagleops.remote")
    sources = {
        f"eagleops.remote.{entry.name.removesuffix('.py')}": entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py") and entry.name != "__init__.py"
    }
    packages = ["eagleops", "eagleops.remote"]
    sources.update(dict.fromkeys(packages, ""))
    program = f"SOURCES = {sources!r}\nPACKAGES = {packages!r}\n{_LOADER}"
    return zlib.compress(program.encode("utf-8"), 9)


def bootstrap(marker: str) -> str:
    """The one-line program that stands in the argv over there: it holds nothing secret.

    ``marker`` tells where the login shell's own chatter ends.
    """
    return (
        f"import sys,zlib;i=sys.stdin.buffer;print(chr(10)+'{marker}',flush=True);"
        "exec(zlib.decompress(i.read(int(i.readline()))))"
    )


@attrs.define(eq=False)
class Session:
    """One resident interpreter. Safe for threads: operations wait for one another.

    Attributes:
        where: The target as messages name it.
        python_version: The interpreter's, for example ``3.11.7``.
    """

    where: str
    python_version: str
    _channel: Channel
    _buffer: bytearray
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)
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
            Unreachable: as :meth:`Transport.open`.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            channel = transport.open(
                [python, "-I", "-c", bootstrap(marker := f"eagleops-{secrets.token_hex(8)}")],
                timeout_s=deadline - time.monotonic(),
            )
            buffer = bytearray()
            try:
                # Sent before the marker is seen: waiting for it would cost a round trip.
                program = bundle()
                channel.send(b"%d\n" % len(program) + program + _line(options or {}))
                _read_past(channel, buffer, f"\n{marker}\n".encode(), deadline)
                hello = json.loads(_read_line(channel, buffer, deadline - time.monotonic()))
                return cls(transport.where, hello["python"], channel, buffer)
            except _Ended:
                status, output = _last_words(channel)
                if not transport.adapt(output):
                    raise transport.explain(output) or _no_interpreter(
                        transport.where, python, status, output
                    ) from None
            except BaseException:
                channel.close()
                raise

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
        **args: Any,
    ) -> dict[str, Any]:
        """Runs one operation and returns its result.

        Args:
            op: A name in :data:`eagleops.remote.operations.OPERATIONS`.
            time_limit_s: Kept over there.
            on_event: Called with each event that the operation yields on its way.
            silence_s: How long the link may be silent before it counts as lost.
            args: The operation's arguments, as JSON.

        Raises:
            OperationFailed: the operation's own typed failure.
            TimedOut: nothing was heard for ``silence_s``; the outcome is unknown.
            LinkLost: the link broke; the outcome is unknown.
        """
        for event in self.stream(op, time_limit_s=time_limit_s, silence_s=silence_s, **args):
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
        **args: Any,
    ) -> Iterator[Event]:
        """Runs one operation and yields its events, ``done`` with its result as the last.

        A stream that is closed early calls the operation off over there.

        Raises:
            OperationFailed, TimedOut, LinkLost: as :meth:`call`.
        """
        with self._lock:
            number, self._next_id = self._next_id, self._next_id + 1
            request = {"id": number, "op": op, "args": args, "time_limit_s": time_limit_s}
            ended = False
            try:
                self._send(_line(request))
                while not ended:
                    event = self._receive(op, silence_s)
                    ended = event["event"] in {"done", "error"}
                    if event["event"] == "error":
                        raise self._failure(event)
                    if event["event"] != "alive":
                        yield event
            except GeneratorExit:
                if not ended:
                    self._call_off(number, op, silence_s)
                raise

    def close(self) -> None:
        """Ends the interpreter over there, and with it whatever operation it runs."""
        self._broken = True
        self._channel.close()

    def _send(self, line: bytes) -> None:
        if self._broken:
            raise LinkLost(problem="the session has ended", where=self.where, host=self.where)
        try:
            self._channel.send(line)
        except EagleError:
            self.close()
            raise

    def _receive(self, op: str, silence_s: float) -> dict[str, Any]:
        try:
            event: dict[str, Any] = json.loads(_read_line(self._channel, self._buffer, silence_s))
        except TimedOut as silence:
            self.close()
            raise TimedOut(
                problem=f"{op}: nothing was heard for {silence_s:g} s, the outcome is unknown",
                where=self.where,
                way_out="Look before you act: eagleops status.",
                host=self.where,
                limit_s=silence_s,
            ) from silence
        except (_Ended, LinkLost) as lost:
            self.close()
            raise LinkLost(
                problem=f"{op}: the link was lost, the outcome is unknown",
                where=self.where,
                way_out="Look before you act: eagleops status.",
                host=self.where,
            ) from lost
        return event

    def _failure(self, event: Event) -> OperationFailed:
        return OperationFailed(
            problem=event["message"],
            where=self.where,
            way_out=event["way_out"],
            host=self.where,
            kind=event["kind"],
            data=event["data"],
        )

    def _call_off(self, number: int, op: str, silence_s: float) -> None:
        self._send(_line({"cancel": number}))
        while self._receive(op, silence_s)["event"] not in {"done", "error"}:
            pass


class _Ended(Exception):
    """The channel's stdout ended."""


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def _fill(channel: Channel, buffer: bytearray, timeout_s: float) -> None:
    data = channel.recv(max(timeout_s, 0.001))
    if not data:
        raise _Ended
    buffer += data


def _read_line(channel: Channel, buffer: bytearray, timeout_s: float) -> bytes:
    searched = 0
    while (end := buffer.find(b"\n", searched)) < 0:
        searched = len(buffer)
        _fill(channel, buffer, timeout_s)
    line = bytes(buffer[:end])
    del buffer[: end + 1]
    return line


def _read_past(channel: Channel, buffer: bytearray, marker: bytes, deadline: float) -> None:
    while (at := buffer.find(marker)) < 0:
        _fill(channel, buffer, deadline - time.monotonic())
    del buffer[: at + len(marker)]


def _last_words(channel: Channel) -> tuple[int | None, str]:
    """Exit status and stderr of an interpreter that ended before it said hello."""
    status: int | None = None
    with contextlib.suppress(EagleError):
        status = channel.wait(1.0)
    channel.close()
    return status, channel.stderr().decode("utf-8", "replace").strip()


def _no_interpreter(where: str, python: str, status: int | None, output: str) -> NoInterpreter:
    last = output.rpartition("\n")[2] or "no output"
    return NoInterpreter(
        problem=f"{python} did not answer (exit status {status}): {last}",
        where=where,
        way_out="Name a python3 of 3.8 or newer on that machine as `python:` in hosts.yaml.",
        host=where,
        exit_status_seen=status,
        output=output,
    )
