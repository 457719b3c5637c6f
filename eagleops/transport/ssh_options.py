"""What a person may set about the SSH way to one host, beside ssh_config."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import attrs

HostKeys = Literal["strict", "accept-new"]


@attrs.frozen(kw_only=True)
class SshOptions:
    """Settings of one host's SSH connection; None leaves the matter to ssh_config.

    Attributes:
        host_keys: ``strict`` refuses a host whose key is on no known_hosts line;
            ``accept-new`` records it. A key that has changed is refused by both.
        known_hosts: Files of known host keys, instead of ssh_config's; the first one is
            where ``accept-new`` writes.
        identity_files: Private keys to try, instead of ssh_config's.
        agent: Whether the SSH agent's keys are tried too.
        config_file: An ssh_config instead of the person's and the system's.
        jump: Jump hosts as in ProxyJump, ``none`` for no jump.
        proxy_command: A program whose stdin and stdout lead to the server, as in ProxyCommand.
        connect_timeout_s: Limit of a login: TCP, key exchange and authentication together,
            each jump host on its own.
        channel_timeout_s: Limit of starting a command on an open connection.
        keepalive_s: How long the server may be silent before it is asked whether it is there;
            after three times as long the link is lost. 0 for never.
        max_channels: Commands at once on the connection; more wait for their turn. sshd's
            MaxSessions is 10 by default, and a refused channel is an error.
    """

    host_keys: HostKeys = attrs.field(
        default="strict", validator=attrs.validators.in_(("strict", "accept-new"))
    )
    known_hosts: tuple[Path, ...] | None = None
    identity_files: tuple[Path, ...] | None = None
    agent: bool = True
    config_file: Path | None = None
    jump: str | None = None
    proxy_command: str | None = None
    connect_timeout_s: float = 15.0
    channel_timeout_s: float = 15.0
    keepalive_s: float = 15.0
    max_channels: int = 8
