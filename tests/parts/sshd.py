"""A real OpenSSH server of one's own: own keys, own configuration, loopback only.

Each connection is served by an ``sshd -i`` of its own, started for a socket that this
module accepts: the port is the kernel's choice (no race for it), nothing is polled for, and
the process that serves a connection is known, so that a test can kill it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from eagleops.transport.host_keys import lookup_name
from eagleops.transport.ssh import SshOptions, SshTransport
from parts import needs
from parts.link import Link
from parts.netns import NetworkNamespace


@attrs.frozen
class Keys:
    """The key pairs of a test run.

    Attributes:
        host: The server's private key; ``host.pub`` lies beside it.
        other_host: Another server's.
        user: The client's, accepted by every Sshd.
    """

    host: Path
    other_host: Path
    user: Path

    @classmethod
    def make(cls, folder: Path) -> Keys:
        """Makes the pairs in ``folder``."""
        keygen = needs.program("ssh-keygen", "openssh-client")
        keys = cls(folder / "host", folder / "other_host", folder / "user")
        for key in (keys.host, keys.other_host, keys.user):
            argv = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(key)]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
        return keys


def public(key: Path) -> str:
    """``type base64`` of a private key's public half."""
    return " ".join(key.with_suffix(".pub").read_text().split()[:2])


@attrs.define(eq=False)
class Sshd:
    """A server on loopback, or in a network namespace.

    Attributes:
        folder: Its files, and whatever a test wants beside them.
        host: Where it listens.
        port: There.
        user: Who logs in: whoever runs the tests.
        config: Its sshd_config; also good for ``sshd -i -f`` behind a proxy command.
        known_hosts: A file with its host key, for clients.
    """

    folder: Path
    keys: Keys
    host: str
    port: int
    user: str
    config: Path
    known_hosts: Path
    _listener: socket.socket
    _program: str
    _namespace: NetworkNamespace | None
    _served: list[subprocess.Popen[bytes]] = attrs.field(factory=list, init=False)
    _links: list[Link] = attrs.field(factory=list, init=False)
    _transports: list[SshTransport] = attrs.field(factory=list, init=False)
    _stopped: bool = attrs.field(default=False, init=False)

    @classmethod
    def start(
        cls,
        folder: Path,
        keys: Keys,
        *,
        environment: Mapping[str, str] | None = None,
        settings: Sequence[str] = (),
        host_key: Path | None = None,
        namespace: NetworkNamespace | None = None,
    ) -> Sshd:
        """Starts a server.

        Args:
            folder: An empty folder for its files.
            keys: Of :meth:`Keys.make`.
            environment: Set for every command, over what sshd and the login give, PATH too.
                HOME is ``folder/home``, empty, unless it stands here: nothing of the
                person's own ~/.bashrc, and an exec in 3 ms where that would take 90.
            settings: More lines of sshd_config.
            host_key: Instead of ``keys.host``.
            namespace: Listens on its address and port 22, and runs its commands in there: a
                host of its own as far as the network goes.
        """
        sshd = needs.program("sshd", "openssh-server")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists, as root
        folder.chmod(0o755)
        (folder / "home").mkdir()
        host_key = host_key or keys.host
        wanted = {"HOME": str(folder / "home"), **(environment or {})}
        config = _write_config(folder, keys, host_key, [*settings, _set_env(wanted)])
        subprocess.run([sshd, "-t", "-f", str(config)], check=True)
        host, port = ("127.0.0.1", 0) if namespace is None else (namespace.address, 22)
        with namespace.entered() if namespace else contextlib.nullcontext():
            listener = socket.create_server((host, port), backlog=64)
        port = listener.getsockname()[1]
        known_hosts = folder / "known_hosts"
        known_hosts.write_text(f"{lookup_name(host, port)} {public(host_key)}\n")
        user = pwd.getpwuid(os.geteuid()).pw_name
        server = cls(folder, keys, host, port, user, config, known_hosts, listener, sshd, namespace)
        threading.Thread(target=server._serve, name="sshd", daemon=True).start()
        return server

    @property
    def home(self) -> Path:
        """HOME of the commands, unless the server was started with another one."""
        return self.folder / "home"

    @property
    def address(self) -> str:
        """``user@host:port``."""
        return f"{self.user}@{self.host}:{self.port}"

    @property
    def proxy_command(self) -> str:
        """A proxy command that *is* a server: no port, no listener, gone with the client."""
        return f"{self._program} -i -f {self.config}"

    def options(self, **changes: object) -> SshOptions:
        """What a client needs to log in here, and nothing of the person's own ~/.ssh."""
        known = {
            "known_hosts": (self.known_hosts,),
            "identity_files": (self.keys.user,),
            "config_file": Path("/dev/null"),
            "agent": False,
        }
        return SshOptions(**{**known, **changes})

    def transport(self, *, via: Link | None = None, **changes: object) -> SshTransport:
        """A transport to here, closed with the server; ``via`` goes through a :meth:`link`."""
        address = self.address if via is None else f"{self.user}@127.0.0.1:{via.port}"
        transport = SshTransport(address, options=self.options(**changes))
        self._transports.append(transport)
        return transport

    def link(self, **settings: float) -> Link:
        """A :class:`Link` to here, with this server's key known under the link's port too."""
        link = Link.open(self.host, self.port, **settings)
        host_key = self.known_hosts.read_text().split("\n")[0].partition(" ")[2]
        with self.known_hosts.open("a") as known_hosts:
            known_hosts.write(f"[127.0.0.1]:{link.port} {host_key}\n")
        self._links.append(link)
        return link

    def ssh_config(self, alias: str, *, port: int | None = None) -> str:
        """A block of ssh_config under which OpenSSH's own ssh and eagleops both get here."""
        return (
            f"Host {alias}\n  HostName {self.host}\n  Port {port or self.port}\n"
            f"  User {self.user}\n  IdentityFile {self.keys.user}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n"
        )

    def connections(self) -> list[int]:
        """PIDs of the sshd processes that serve a connection now, oldest first."""
        return [process.pid for process in self._served if process.poll() is None]

    def kill_connections(self) -> None:
        """Kills what serves the connections, as an out-of-memory killer or an admin would."""
        for process in self._served:
            if process.poll() is None:
                for pid in [process.pid, *_children(process.pid, "sshd")]:
                    # Without the first the others end by themselves.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait()

    def stop(self) -> None:
        """Ends the server, its connections, links and transports."""
        self._stopped = True
        # A thread that waits in accept keeps a closed listener's port open: wake it.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for link in self._links:
            link.close()
        self.kill_connections()
        for transport in self._transports:
            transport.close()

    def _serve(self) -> None:
        with self._namespace.entered() if self._namespace else contextlib.nullcontext():
            self._accept()

    def _accept(self) -> None:
        while not self._stopped:
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            with connection, (self.folder / "sshd.log").open("ab") as log:
                argv = [self._program, "-i", "-e", "-f", str(self.config)]
                process = subprocess.Popen(argv, stdin=connection, stdout=connection, stderr=log)
                self._served.append(process)


def _write_config(folder: Path, keys: Keys, host_key: Path, settings: Sequence[str]) -> Path:
    authorized = folder / "authorized_keys"
    authorized.write_text(public(keys.user) + "\n")
    lines = [
        f"HostKey {host_key}",
        f"AuthorizedKeysFile {authorized}",
        "PidFile none",
        "UsePAM no",
        "StrictModes no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin prohibit-password",
        "PrintMotd no",
        *settings,
    ]
    config = folder / "sshd_config"
    config.write_text("\n".join(lines) + "\n")
    return config


def _set_env(environment: Mapping[str, str]) -> str:
    for name, value in environment.items():
        if '"' in value or "\n" in value:
            raise ValueError(f"sshd_config cannot hold this value of {name}: {value!r}")
    return "SetEnv " + " ".join(f'"{name}={value}"' for name, value in environment.items())


def _children(pid: int, comm: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, rest = stat.partition("(")[2].rpartition(")")
            if int(rest.split()[1]) == pid and name == comm:
                found.append(int(entry.name))
    return found
