"""The transport over SSH: one connection a host, shared by threads and by containers.

It stands on Fabric's Connection for logging in, and not on its ``run()``: that quotes no
environment, captures in quadratic time (20 MB in 35 s), does not bound the opening of a
channel, and tells a lost link as exit status -1.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

import attrs

from eagleops.errors import ConnectFailed
from eagleops.transport.base import Argv, Channel, Completed
from eagleops.transport.completion import complete
from eagleops.transport.deadline import Deadline
from eagleops.transport.quoting import command_line
from eagleops.transport.ssh_options import HostKeys, SshOptions
from eagleops.transport.ssh_pool import Pool

if TYPE_CHECKING:
    from eagleops.transport.ssh_connection import Connection

__all__ = ["HostKeys", "SshOptions", "SshTransport"]

# sshd may still hold the sessions of commands that have just ended: it is asked again.
_REFUSALS = 5
_REFUSAL_PAUSE_S = 0.05


@attrs.define(eq=False)
class SshTransport:
    """Runs commands on a host by SSH. Safe for threads.

    The connection is made when the first command is started, and made anew when it is found
    dead before a command was sent; a command is never sent twice.

    Attributes:
        address: ``user@host``, ``user@host:port``, or an alias of ssh_config.
        options: See :class:`SshOptions`.
    """

    address: str
    options: SshOptions = attrs.field(factory=SshOptions, kw_only=True)
    _pool: Pool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._pool = Pool(self.where, self.options.max_channels, self._connect)

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
        deaths = refusals = 0
        while True:
            connection = self._pool.borrow(deadline)
            given_back = functools.partial(self._pool.give_back, connection)
            try:
                limit = deadline.sooner(self.options.channel_timeout_s)
                return ssh_channel.start(connection.transport, line, limit, self.where, given_back)
            except ssh_channel.Refused as refused:
                if not self._pool.refused(connection):
                    refusals += 1
                    time.sleep(_REFUSAL_PAUSE_S)
                if refusals > _REFUSALS or deadline.passed:
                    raise refused.error from refused
            except ssh_channel.NothingRan as dead:
                self._pool.retire(connection)
                deaths += 1
                if deaths > 1 or deadline.passed:
                    raise dead.error from dead
            except BaseException:
                given_back()
                raise

    def connect(self, host: str, port: int, *, timeout_s: float | None = None) -> Channel:
        """A TCP connection from the host to ``host:port``; see :mod:`eagleops.transport.forward`.

        Raises:
            Unreachable: as :meth:`open`; ConnectFailed also where nothing listens there.
        """
        from eagleops.transport import ssh_channel  # as in open()

        deadline = Deadline.after(timeout_s)
        connection = self._pool.borrow(deadline)
        given_back = functools.partial(self._pool.give_back, connection)
        try:
            limit = deadline.sooner(self.options.channel_timeout_s)
            place = (host, port)
            return ssh_channel.connect(connection.transport, place, limit, self.where, given_back)
        except BaseException:
            given_back()
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
        self._pool.close()

    def _connect(self, deadline: Deadline) -> Connection:
        from eagleops.transport import ssh_connection  # as in open()

        return ssh_connection.connect(self.address, self.options, deadline, self.where)
