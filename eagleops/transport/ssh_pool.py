"""Sharing a host's SSH connections among threads and containers, with a bound on channels."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from eagleops.errors import EagleError, TimedOut
from eagleops.transport.deadline import Deadline

if TYPE_CHECKING:
    from eagleops.transport.ssh_connection import Connection

# Where no channel has become free for so long, all are held by something that stays, by
# sessions for example: another connection is made. Short commands wait for their turn.
PATIENCE_S = 1.0
MAX_CONNECTIONS = 8


@attrs.define(eq=False)
class Pool:
    """One host's connections. Safe for threads.

    Attributes:
        where: The host as messages name it.
        max_channels: Channels at once on one connection.
        connect: Makes a connection.
    """

    where: str
    max_channels: int
    connect: Callable[[Deadline], Connection]
    _connections: list[Connection] = attrs.field(factory=list, init=False)
    _changed: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _returned_at: float = attrs.field(factory=time.monotonic, init=False)
    _connecting: bool = attrs.field(default=False, init=False)
    _attempts: int = attrs.field(default=0, init=False)
    _failure: EagleError | None = attrs.field(default=None, init=False)

    def borrow(self, deadline: Deadline) -> Connection:
        """A live connection with room for one more channel, counted as used.

        Raises:
            Unreachable: as ``connect``, also that of another thread that was waited for.
            TimedOut: if no channel became free in time.
        """
        began = time.monotonic()
        with self._changed:
            while True:
                self._drop_dead()
                for connection in self._connections:
                    if connection.used < connection.capacity and not connection.retired:
                        connection.used += 1
                        return connection
                patience_s = max(began, self._returned_at) + PATIENCE_S - time.monotonic()
                if self._may_connect(patience_s):
                    self._connecting = True
                    break
                self._await_change(deadline, patience_s)
        return self._connect(deadline)

    def give_back(self, connection: Connection) -> None:
        """Counts one channel less on ``connection``."""
        with self._changed:
            self._returned_at = time.monotonic()
            connection.used -= 1
            # An sshd that refused a channel may only have been slow to end another one.
            connection.capacity = min(connection.capacity + 1, self.max_channels)
            self._drop_dead()
            self._changed.notify_all()

    def refused(self, connection: Connection) -> bool:
        """Gives back what sshd refused to open; whether other channels of ours are in the way."""
        self.give_back(connection)
        with self._changed:
            connection.capacity = max(1, connection.used)
            return connection.used > 0

    def retire(self, connection: Connection) -> None:
        """Gives back a connection that did not answer: it gets no more channels."""
        connection.retired = True
        self.give_back(connection)

    def close(self) -> None:
        """Closes all connections."""
        with self._changed:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    def _may_connect(self, patience_s: float) -> bool:
        if self._connecting:
            return False
        usable = [connection for connection in self._connections if not connection.retired]
        return not usable or (patience_s <= 0 and len(self._connections) < MAX_CONNECTIONS)

    def _await_change(self, deadline: Deadline, patience_s: float) -> None:
        attempt = self._attempts
        limit = deadline.sooner(patience_s) if patience_s > 0 else deadline
        self._changed.wait(limit.remaining_s())
        if self._attempts > attempt and self._failure is not None:
            # The login that we waited for failed; one more a thread would fail likewise.
            raise attrs.evolve(self._failure)
        if deadline.passed:
            raise TimedOut(
                problem=f"no channel was free for {deadline.limit_s:g} s",
                where=self.where,
                way_out="Nothing ran. Too many commands run there at once.",
                host=self.where,
                limit_s=deadline.limit_s or 0.0,
            )

    def _connect(self, deadline: Deadline) -> Connection:
        connection = failure = None
        try:
            connection = self.connect(deadline)
        except EagleError as error:
            failure = error
            raise
        finally:
            with self._changed:
                self._connecting = False
                self._attempts += 1
                self._failure = failure
                if connection is not None:
                    connection.used = 1
                    connection.capacity = self.max_channels
                    self._connections.append(connection)
                self._changed.notify_all()
        return connection

    def _drop_dead(self) -> None:
        for connection in list(self._connections):
            if not connection.alive or (connection.retired and connection.used == 0):
                self._connections.remove(connection)
                # In a thread: closing waits for Paramiko's, and we hold the lock.
                threading.Thread(target=connection.close, daemon=True).start()
