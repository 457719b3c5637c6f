"""The nouns of hosts.yaml, as frozen objects."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

from eagleops.transport.ssh_options import SshOptions

Transport = Literal["ssh", "local", "sim"]
Kind = Literal["pct", "docker", "lxc", "incus"]
HostKeys = Literal["strict", "accept-new"]

# What a CUDA driver keeps for itself on an idle GPU is less; a model's remains are more.
IDLE_MIB = 100


@attrs.frozen(kw_only=True)
class Defaults:
    """What a command means that names no host or no profile; None where nothing is said."""

    host: str | None = None
    profile: str | None = None


@attrs.frozen(kw_only=True)
class SimSettings:
    """The embedded box behind a ``sim`` host.

    Attributes:
        gpus: How many it shows.
        directory: Where it keeps its state; None for the user's own place.
    """

    gpus: int = 8
    directory: Path | None = None


@attrs.frozen(kw_only=True)
class _Target:
    name: str
    origin: str = ""
    address: str = ""
    python: str = "python3"
    host_keys: HostKeys = "strict"
    known_hosts: tuple[Path, ...] | None = None
    identity_file: tuple[Path, ...] | None = None
    ssh_config: Path | None = None
    via: str | None = None
    connect_timeout_s: float = 15.0
    idle_mib: int = IDLE_MIB
    state_home: str | None = None

    @property
    def ssh(self) -> SshOptions:
        """The settings of its SSH connection."""
        return SshOptions(
            host_keys=self.host_keys,
            known_hosts=self.known_hosts,
            identity_files=self.identity_file,
            config_file=self.ssh_config,
            jump=self.via,
            connect_timeout_s=self.connect_timeout_s,
        )


@attrs.frozen(kw_only=True)
class HostEntry(_Target):
    """A machine that is reached by SSH, the one at hand, or the embedded box.

    Attributes:
        name: As in hosts.yaml.
        origin: File and line where it stands.
        transport: How it is reached.
        address: ``user@host[:port]``, or a Host of ssh_config; empty unless by SSH.
        python: Its python3, a path or a name on its PATH, 3.8 or newer.
        host_keys: What happens to a host key that is on no known_hosts line.
        known_hosts: Instead of ssh_config's.
        identity_file: Private keys, instead of ssh_config's.
        ssh_config: Instead of the person's and the system's.
        via: Jump hosts as in ProxyJump; None leaves it to ssh_config.
        connect_timeout_s: Limit of a login in seconds.
        idle_mib: So much memory in use still counts as an idle GPU, in MiB.
        state_home: Absolute path of the folder for servers' states over there; None for
            $XDG_STATE_HOME or ~/.local/state.
        sim: Of the embedded box.
    """

    transport: Transport = "ssh"
    sim: SimSettings = attrs.field(factory=SimSettings)

    @property
    def by_ssh(self) -> bool:
        """Whether it is reached by an SSH connection of its own."""
        return self.transport == "ssh"


@attrs.frozen(kw_only=True)
class ContainerEntry(_Target):
    """A container on a host.

    Attributes:
        on: The host's name.
        kind: What runs it.
        vmid: Its number, for pct.
        container_name: Its name, for the other kinds; the entry's own name without one.
        program: Path of pct, docker, lxc-attach or incus, where it is not on the host's PATH.
        address: Its own SSH address, used when given; the others as in :class:`HostEntry`.
    """

    on: str
    kind: Kind = "pct"
    vmid: int | None = None
    container_name: str | None = None
    program: str | None = None

    @property
    def by_ssh(self) -> bool:
        """As :attr:`HostEntry.by_ssh`; without an address it is reached through its host."""
        return bool(self.address)

    @property
    def identifier(self) -> str:
        """What its host calls it: the number for pct, the name for the other kinds."""
        return str(self.vmid) if self.kind == "pct" else self.container_name or self.name
