"""A login: Fabric's connection, with host keys checked, every wait bounded, and no delay.

This module is imported when the first connection is made: Fabric takes 0.2 s to import.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
import threading
from typing import Any

import fabric
import paramiko

from eagleops.errors import ConnectFailed
from eagleops.transport import proxy_command
from eagleops.transport.deadline import Deadline
from eagleops.transport.host_key_policy import HostKeyPolicy
from eagleops.transport.ssh_config import HostSettings, route
from eagleops.transport.ssh_errors import login_failed, login_timed_out
from eagleops.transport.ssh_options import SshOptions
from eagleops.transport.ssh_transport import Transport

# Without a handler, logging prints Paramiko's errors to stderr; ours say the same, better.
logging.getLogger("paramiko").addHandler(logging.NullHandler())

# sshd drops logins at random from the tenth unfinished one on (MaxStartups 10:30:100), and
# counts those of all our transports together: so they are counted for the whole process.
MAX_LOGINS = 6
_logins: dict[tuple[str, int], threading.BoundedSemaphore] = {}
_logins_lock = threading.Lock()


class Connection:
    """One login to a host, through its jump hosts.

    Attributes:
        used: How many channels are open; kept, as the next two, by whoever shares it.
        capacity: How many may be.
        retired: No new channels, because the peer did not answer one.
    """

    def __init__(self, logins: list[_Login]) -> None:
        self._logins = logins
        self.used = 0
        self.capacity = 0
        self.retired = False

    @property
    def transport(self) -> Transport:
        """Paramiko's, authenticated."""
        transport = self._logins[-1].transport
        if transport is None:
            raise ValueError("not logged in")
        return transport

    @property
    def alive(self) -> bool:
        """Whether the connection is up, as far as can be told without asking the peer."""
        return all(login.transport and login.transport.is_active() for login in self._logins)

    def close(self) -> None:
        """Ends the connection, its jump hosts' and its proxy command."""
        for login in reversed(self._logins):
            login.close()


def connect(address: str, options: SshOptions, deadline: Deadline, where: str) -> Connection:
    """Logs in to ``address``, through its jump hosts.

    Raises:
        ConnectFailed: if no login was made; nothing ran over there.
        HostKeyRefused: if a host on the way is not the one it should be.
        UsageError: if the address or an ssh_config cannot be read.
    """
    hops = route(address, options)
    logins: list[_Login] = []
    try:
        for settings in hops:
            place = where if settings is hops[-1] else f"{where}: jump host {settings.address}"
            via = logins[-1] if logins else None
            logins.append(_Login(settings, options, place, via))
            logins[-1].make(deadline.sooner(options.connect_timeout_s))
    except BaseException:
        for login in reversed(logins):
            login.close()
        raise
    return Connection(logins)


class _Login:
    """One hop: a socket, Fabric's connection over it, and what bounds the login."""

    def __init__(
        self, settings: HostSettings, options: SshOptions, where: str, via: _Login | None
    ) -> None:
        self.transport: Transport | None = None
        self._settings = settings
        self._options = options
        self._where = where
        self._via = via
        self._policy = HostKeyPolicy(settings, options.host_keys, where)
        self._proxy: subprocess.Popen[bytes] | None = None
        self._sock: Any = None
        self._fabric: fabric.Connection | None = None

    def make(self, deadline: Deadline) -> None:
        """Logs in.

        Raises:
            ConnectFailed, HostKeyRefused: as :func:`connect`.
        """
        key = (self._settings.host, self._settings.port)
        with _logins_lock:
            slots = _logins.setdefault(key, threading.BoundedSemaphore(MAX_LOGINS))
        if not slots.acquire(timeout=deadline.remaining_s()):
            raise self._timed_out(deadline)
        # Paramiko bounds each step, some of them (a jump host's channel, the wait for the
        # answer to exec) not at all: this bounds the whole.
        watchdog = threading.Timer(deadline.remaining_s() or 0.0, self._abort)
        watchdog.daemon = True
        watchdog.start()
        try:
            self._open(deadline)
        except Exception as error:
            if deadline.passed:
                raise self._timed_out(deadline) from error
            raise login_failed(error, self._where, self._settings.words) from error
        finally:
            watchdog.cancel()
            slots.release()

    def close(self) -> None:
        """Ends the login."""
        if self.transport is not None:
            self.transport.close()
        if self._sock is not None:
            self._sock.close()
        if self._proxy is not None:
            proxy_command.stop(self._proxy)

    def _open(self, deadline: Deadline) -> None:
        remaining_s = deadline.remaining_s()
        connection = fabric.Connection(
            self._settings.host,
            user=self._settings.user,
            port=self._settings.port,
            # ssh_config was read already, and better; ~/.fabric.yml is about Fabric's own run().
            config=fabric.Config(ssh_config=paramiko.SSHConfig(), lazy=True),
            connect_kwargs={
                "timeout": remaining_s,
                "banner_timeout": remaining_s,
                "auth_timeout": remaining_s,
                "channel_timeout": self._options.channel_timeout_s,
                "transport_factory": self._transport,
                "sock": self._socket(deadline),
                "key_filename": [str(file) for file in self._settings.identity_files],
                "allow_agent": self._settings.agent,
                "look_for_keys": False,
            },
        )
        connection.client.set_missing_host_key_policy(self._policy)
        connection.open()
        self._fabric = connection
        if self.transport is not None:
            self.transport.keepalive_s = self._options.keepalive_s

    def _socket(self, deadline: Deadline) -> Any:
        """The way to the server; None lets Paramiko make a TCP connection."""
        if self._settings.proxy_command:
            self._sock, self._proxy = proxy_command.start(self._settings.proxy_command)
            return self._sock
        if self._via is None or self._via.transport is None:
            return None
        return self._via.transport.open_channel(
            "direct-tcpip",
            (self._settings.host, self._settings.port),
            ("127.0.0.1", 0),
            timeout=deadline.remaining_s(),
        )

    def _transport(self, sock: Any, **settings: Any) -> Transport:
        """Paramiko's transport as we want it: called by its client, before the handshake."""
        self._sock = sock
        _quicken(sock)
        self.transport = Transport(sock, **settings)
        security = self.transport.get_security_options()
        offered = list(security.key_types)
        preferred = [name for name in self._policy.preferred_types() if name in offered]
        security.key_types = (*preferred, *(name for name in offered if name not in preferred))
        return self.transport

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _timed_out(self, deadline: Deadline) -> ConnectFailed:
        limit_s, settings = deadline.limit_s or 0.0, self._settings
        return login_timed_out(limit_s, self._where, settings.address, settings.words)


def _quicken(sock: Any) -> None:
    """Sends small packets at once, and lets the kernel notice a peer that has gone.

    Paramiko sets no TCP_NODELAY: a channel opens in 42 ms without, in 0.4 ms with it.
    """
    if not isinstance(sock, socket.socket) or sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _TCP_LIVENESS.items():
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


# A cable pulled, a machine without power: known to our kernel after about half a minute.
_TCP_LIVENESS = {
    getattr(socket, name): value
    for name, value in (
        ("TCP_KEEPIDLE", 15),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", 30_000),
    )
    if hasattr(socket, name)
}
