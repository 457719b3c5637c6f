"""Paramiko's and the socket's errors as ours: mapped here, once, each with ``from``.

Which of ours an error becomes depends on when it comes: while logging in nothing has run
yet (ConnectFailed), later a command's outcome is unknown (LinkLost).
"""

from __future__ import annotations

import socket
from collections.abc import Mapping

import paramiko
from paramiko import auth_strategy, buffered_pipe, ssh_exception

from eagleops.errors import ConnectFailed, LinkLost, Unreachable

_KEYS_WAY_OUT = (
    "Try it by hand: ssh -v {words}. Is the key in the agent (ssh-add -l), or named as "
    "IdentityFile in ssh_config?"
)
_NETWORK_WAY_OUT = "Is the machine up, and is this its address? Try it by hand: ssh -v {words}."
_SERVER_WAY_OUT = "Try it by hand: ssh -v {words}."

# Every exception class that Paramiko can raise while a connection is made: what to say
# ({error} is its own text), and the way out. A test compares the keys with Paramiko's classes.
LOGIN_ERRORS: Mapping[type[BaseException], tuple[str, str]] = {
    paramiko.PasswordRequiredException: (
        "the private key is encrypted and the agent does not hold it",
        "Add it to the agent: ssh-add PATH_OF_THE_KEY.",
    ),
    paramiko.BadAuthenticationType: (
        "the server wants another kind of login: {error}",
        _KEYS_WAY_OUT,
    ),
    ssh_exception.PartialAuthentication: (
        "the server wants more than a key: {error}",
        "A login that asks questions cannot be used; let the server accept the key alone.",
    ),
    auth_strategy.AuthFailure: ("the server accepted none of the keys", _KEYS_WAY_OUT),
    ssh_exception.UnableToAuthenticate: ("the server accepted none of the keys", _KEYS_WAY_OUT),
    paramiko.AuthenticationException: ("the server accepted none of the keys", _KEYS_WAY_OUT),
    paramiko.BadHostKeyException: (
        "the host key is not the one on record: {error}",
        _SERVER_WAY_OUT,
    ),
    paramiko.ChannelException: (
        "the jump host does not lead on to it: {error}",
        "Does the jump host's sshd allow forwarding (AllowTcpForwarding), and does it get there?",
    ),
    ssh_exception.IncompatiblePeer: (
        "the server offers no algorithm that Paramiko still knows: {error}",
        "Update the server's OpenSSH (SHA-1 and DSA are gone).",
    ),
    ssh_exception.MessageOrderError: ("the server breaks the protocol: {error}", _SERVER_WAY_OUT),
    paramiko.ProxyCommandFailure: ("the proxy command failed: {error}", _SERVER_WAY_OUT),
    ssh_exception.CouldNotCanonicalize: ("its name cannot be resolved: {error}", _NETWORK_WAY_OUT),
    paramiko.ConfigParseError: ("ssh_config cannot be read: {error}", "See man ssh_config."),
    ssh_exception.NoValidConnectionsError: ("{error.strerror}", _NETWORK_WAY_OUT),
    buffered_pipe.PipeTimeout: ("the server fell silent", _NETWORK_WAY_OUT),
    paramiko.SSHException: ("{error}", _SERVER_WAY_OUT),
    EOFError: (
        "the server closed the connection before the login was done",
        "Its log says why: journalctl -u ssh. Of many logins at once some drop (MaxStartups).",
    ),
    socket.gaierror: ("its name cannot be resolved: {error.strerror}", _NETWORK_WAY_OUT),
    TimeoutError: ("the server did not answer", _NETWORK_WAY_OUT),
    OSError: ("{error}", _NETWORK_WAY_OUT),
}

# What any of them means once a channel is open.
LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)


def login_failed(error: BaseException, where: str, words: str) -> Unreachable:
    """``error`` of a login as one of ours: nothing ran over there.

    Args:
        error: What Paramiko or the socket raised.
        where: The machine, as hosts.yaml calls it.
        words: It as OpenSSH's client takes it, ``-p port user@host``.
    """
    if isinstance(error, Unreachable):
        return error
    for kind in type(error).__mro__:
        if kind in LOGIN_ERRORS:
            problem, way_out = LOGIN_ERRORS[kind]
            return ConnectFailed(
                problem=problem.format(error=error),
                where=where,
                way_out=way_out.format(words=words),
                host=where,
            )
    raise error


def login_timed_out(limit_s: float, where: str, address: str, words: str) -> ConnectFailed:
    """A login that was not done in time: nothing ran over there."""
    return ConnectFailed(
        problem=f"no login to {address} within {limit_s:g} s",
        where=where,
        way_out=_NETWORK_WAY_OUT.format(words=words),
        host=where,
    )


def link_lost(where: str, what: str = "the link broke") -> LinkLost:
    """The link went while something ran."""
    return LinkLost(
        problem=what,
        where=where,
        way_out="Look before you act: eagleops status.",
        host=where,
    )
