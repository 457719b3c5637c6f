"""Paramiko's errors are ours by the time anybody sees them: none is left out."""

import importlib
import inspect
import pkgutil
import socket

import fabric
import paramiko
import pytest

from eagleops.errors import ConnectFailed, EagleError, HostKeyRefused, Unreachable
from eagleops.transport import ssh_transport
from eagleops.transport.ssh_errors import LINK_ERRORS, LOGIN_ERRORS, login_failed, login_timed_out

# Raised by parts of Paramiko that no login and no channel of ours goes through, or caught
# inside of it.
NOT_OURS = {
    "paramiko.ber.BERException",  # reading a broken key file: PKey turns it into SSHException
    "paramiko.hostkeys.InvalidHostKey",  # Paramiko's known_hosts reader, which is not used
    "paramiko.packet.NeedRekeyException",  # caught by the transport
    "paramiko.pkey.UnknownKeyType",  # PKey.from_path, which is not used
    "paramiko.sftp.SFTPError",  # no SFTP
}


def exceptions_of(package):
    """Every exception class that a package defines, by its full name."""
    found = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if "_winapi" in module.name or "win_" in module.name or module.name.endswith("__main__"):
            continue
        loaded = importlib.import_module(module.name)
        for _name, kind in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(kind, BaseException) and kind.__module__ == module.name:
                found[f"{kind.__module__}.{kind.__qualname__}"] = kind
    return found


def test_every_exception_of_paramiko_is_mapped():
    """A new exception class of Paramiko fails this test until somebody has thought about it."""
    unmapped = {
        name
        for name, kind in exceptions_of(paramiko).items()
        if kind not in LOGIN_ERRORS and name not in NOT_OURS
    }
    assert unmapped == set()


def test_the_exceptions_left_out_exist():
    """What is left out by name is still there, so that the list does not rot."""
    assert set(exceptions_of(paramiko)) >= NOT_OURS


def test_fabric_raises_none_of_its_own_while_logging_in():
    """Fabric's own exceptions are about groups, tasks and its v1: none can come from open()."""
    assert set(exceptions_of(fabric)) == {
        "fabric.exceptions.GroupException",
        "fabric.exceptions.InvalidV1Env",
        "fabric.exceptions.NothingToDo",
    }


def made(kind):
    """An instance, whatever its constructor wants."""
    wanted = {
        paramiko.BadAuthenticationType: ("wrong kind", ["password"]),
        paramiko.ssh_exception.PartialAuthentication: (["password"],),
        paramiko.ChannelException: (2, "Connect failed"),
        paramiko.BadHostKeyException: (
            "h",
            paramiko.ECDSAKey.generate(),
            paramiko.ECDSAKey.generate(),
        ),
        paramiko.ProxyCommandFailure: ("nc", 1),
        paramiko.ssh_exception.NoValidConnectionsError: (
            {("192.0.2.6", 22): ConnectionRefusedError()},
        ),
        paramiko.auth_strategy.AuthFailure: (paramiko.auth_strategy.AuthResult(None),),
        socket.gaierror: (-2, "Name or service not known"),
    }
    return kind(*wanted.get(kind, ("some {braces} of its own",)))


@pytest.mark.parametrize("kind", LOGIN_ERRORS, ids=lambda kind: kind.__name__)
def test_each_becomes_a_connection_error_with_a_way_out(kind):
    """Whatever breaks a login, nothing ran: where, what and the way out are told."""
    error = login_failed(made(kind), "llm", "-p 22 root@192.0.2.6")
    assert isinstance(error, ConnectFailed)
    assert (error.where, error.host) == ("llm", "llm")
    assert error.problem
    assert error.way_out
    assert "None" not in str(error)


def test_a_subclass_is_mapped_as_its_nearest_relative():
    """A reset connection is an OSError that says so itself."""
    error = login_failed(
        ConnectionResetError(104, "Connection reset by peer"), "llm", "-p 22 root@h"
    )
    assert str(error) == (
        "llm: [Errno 104] Connection reset by peer\n"
        "Is the machine up, and is this its address? Try it by hand: ssh -v -p 22 root@h."
    )


def test_our_own_errors_pass():
    """A refused host key, raised from inside of Paramiko, comes out as it is."""
    refused = HostKeyRefused(problem="no", where="llm")
    assert login_failed(refused, "llm", "-p 22 root@h") is refused


def test_a_mistake_of_our_own_is_not_dressed_up():
    """What no login can raise is a bug, and stays visible as one."""
    with pytest.raises(KeyError):
        login_failed(KeyError("bug"), "llm", "-p 22 root@h")


def test_a_login_that_takes_too_long_says_so():
    """A login over its limit is a connection error: nothing ran, the outcome is known."""
    assert str(login_timed_out(15.0, "llm", "root@192.0.2.6:22", "-p 22 root@192.0.2.6")) == (
        "llm: no login to root@192.0.2.6:22 within 15 s\n"
        "Is the machine up, and is this its address? Try it by hand: ssh -v -p 22 root@192.0.2.6."
    )


def test_on_an_open_link_every_error_is_a_lost_link():
    """Every error of Paramiko and of sockets counts as the link's once a channel is open."""
    for name, kind in exceptions_of(paramiko).items():
        assert issubclass(kind, LINK_ERRORS) or name in NOT_OURS, name


def test_unreachable_covers_them_all():
    """Whoever catches Unreachable catches every error of a transport."""
    assert issubclass(ConnectFailed, Unreachable)
    assert issubclass(Unreachable, EagleError)


def test_paramiko_still_has_the_table_that_we_hook_into():
    """Exit signals and the order of last words hang on Paramiko's table of channel handlers."""
    assert set(ssh_transport._HANDLERS) >= {
        paramiko.common.MSG_CHANNEL_REQUEST,
        paramiko.common.MSG_CHANNEL_CLOSE,
    }
