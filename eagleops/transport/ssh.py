"""The transport over SSH: one connection a host, shared by threads and by containers.

It stands on Fabric's Connection for logging in, and not on its ``run()``: that quotes no
environment, captures in quadratic time (20 MB in 35 s), does not bound the opening of a
channel, and tells a lost link as exit status -1.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

import attrs

from eagleops.errors import ConnectFailed, EagleError, TimedOut
from eagleops.transport.base import Argv, Channel, Completed
from eagleops.transport.completion import complete
from eagleops.transport.deadline import Deadline
from eagleops.transport.quoting import command_line
from eagleops.transport.ssh_options import HostKeys, SshOptions

if TYPE_CHECKING:
    from eagleops.transport.ssh_connection import Connection

__all__ = ["HostKeys", "SshOptions", "SshTransport"]

# A channel that is not free by now is held by something long, a session for example: more
# channels then come from another connection.
SLOT_PATIENCE_S = 1.0
MAX_CONNECTIONS = 8


@attrs.define(eq=False)
class SshTransport:
    """Runs commands on a host by SSH. Safe for threads.

    The connection is made when the first command is started, and made anew when it is found
    dead before a command was started; a command is never started twice.

    Attributes:
        address: ``user@host``, ``user@host:port``, or an alias of ssh_config.
        options: See :class:`SshOptions`.
    """

    address: str
    options: SshOptions = attrs.field(factory=SshOptions, kw_only=True)
    _connections: list[Connection] = attrs.field(factory=list, init=False)
    _changed: threading.Condition = attrs.field(factory=threading.Condition, init=False)
    _connecting: bool = attrs.field(default=False, init=False)
    _attempts: int = attrs.field(default=0, init=False)
    _failure: EagleError | None = attrs.field(default=None, init=False)

    @property
    def where(self) -> str:
        """The address."""
        return self.address

    def open(self, argv: Argv, *, timeout_s: float | None = None) -> Channel:
        """As :meth:`eagleops.transport.base.Transport.open`.

        Raises:
            ValueError, EagleError: as :func:`eagleops.transport.quoting.command_line`.
        """
        # Fabric and Paramiko take 0.2 s to import: who never connects does not pay.
        from eagleops.transport import ssh_channel

        line = command_line(argv)
        deadline = Deadline.after(timeout_s)
        tries = 0
        while True:
            connection = self._borrow(deadline)
            released = functools.partial(self._give_back, connection)
            try:
                limit = deadline.sooner(self.options.channel_timeout_s)
                return ssh_channel.start(connection.transport, line, limit, self.where, released)
            except ssh_channel.Refused as refused:
                released()
                if not self._shrink(connection):
                    raise refused.error from refused
            except ssh_channel.NothingRan as dead:
                connection.retired = True
                released()
                tries += 1
                if tries > 1 or deadline.passed:
                    raise dead.error from dead
            except BaseException:
                released()
                raise

    def run(self, argv: Argv, *, stdin: bytes = b"", timeout_s: float | None = None) -> Completed:
        """As :meth:`eagleops.transport.base.Transport.run`."""
        return complete(self, argv, stdin=stdin, timeout_s=timeout_s)

    def explain(self, stderr: str) -> ConnectFailed | None:  # noqa: ARG002
        """None: what SSH itself refuses is an error of :meth:`open`."""
        return None

    def adapt(self, stderr: str) -> bool:  # noqa: ARG002
        """False: there is only one way."""
        return False

    def close(self) -> None:
        """Closes the connections; commands that still run lose their stdin."""
        with self._changed:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()

    def _borrow(self, deadline: Deadline) -> Connection:
        """A live connection with room for one more channel, counted as used."""
        impatient = Deadline.after(SLOT_PATIENCE_S)
        with self._changed:
            while True:
                self._drop_dead()
                for connection in self._connections:
                    if connection.used < connection.capacity and not connection.retired:
                        connection.used += 1
                        return connection
                if not self._connecting and self._may_connect(impatient):
                    self._connecting = True
                    break
                self._await_change(deadline, impatient)
        return self._connect(deadline)

    def _may_connect(self, impatient: Deadline) -> bool:
        busy = [connection for connection in self._connections if not connection.retired]
        return not busy or (impatient.passed and len(self._connections) < MAX_CONNECTIONS)

    def _await_change(self, deadline: Deadline, impatient: Deadline) -> None:
        attempt = self._attempts
        until = impatient if not impatient.passed and impatient.at < deadline.at else deadline
        self._changed.wait(until.remaining_s())
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
        from eagleops.transport import ssh_connection

        connection = failure = None
        try:
            connection = ssh_connection.connect(self.address, self.options, deadline, self.where)
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
                    connection.capacity = self.options.max_channels
                    self._connections.append(connection)
                self._changed.notify_all()
        return connection

    def _give_back(self, connection: Connection) -> None:
        with self._changed:
            connection.used -= 1
            self._drop_dead()
            self._changed.notify_all()

    def _shrink(self, connection: Connection) -> bool:
        """Notes that sshd takes no more channels than are open now; False if that is none."""
        with self._changed:
            connection.capacity = connection.used
            return connection.capacity > 0

    def _drop_dead(self) -> None:
        for connection in list(self._connections):
            done = connection.retired and connection.used == 0
            if done or not connection.alive:
                self._connections.remove(connection)
                # In a thread: closing waits for Paramiko's, and we hold the lock.
                threading.Thread(target=connection.close, daemon=True).start()
