"""The SSH transport against a real sshd: speed, sharing, limits, what sshd and the shell add."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paramiko
import pytest

from eagleops.errors import ConnectFailed, EagleError, TimedOut, UsageError
from eagleops.transport import ssh_pool
from eagleops.transport.ssh import SshOptions, SshTransport
from parts.poll import acting_when, until

LIMIT_S = 30.0
MIB = 1024 * 1024


def test_a_transport_connects_when_it_is_first_used(sshd):
    """Making a transport touches nothing; the first command logs in; close ends the login."""
    transport = sshd.transport()
    assert sshd.connections() == []
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0
    assert len(sshd.connections()) == 1
    transport.close()
    until(lambda: sshd.connections() == [])
    assert transport.run(["true"], timeout_s=LIMIT_S).exit_status == 0


def test_what_the_login_shell_prints_is_not_hidden(make_sshd, tmp_path):
    """A run hands on what a .bashrc prints; a session looks past it (tests/session)."""
    (tmp_path / ".bashrc").write_text("echo hello from bashrc\n")
    server = make_sshd(environment={"HOME": str(tmp_path)})
    completed = server.transport().run(["echo", "answer"], timeout_s=LIMIT_S)
    assert completed.stdout == b"hello from bashrc\nanswer\n"


@pytest.mark.alone
def test_twenty_megabytes_take_less_than_two_seconds(sshd, record_property):
    """20 MB of output arrive in under 2 s, and 20 MB of input go up in under 2 s."""
    transport = sshd.transport()
    down = transport.run(["head", "-c", "20000000", "/dev/zero"], timeout_s=LIMIT_S)
    record_property("down_s", down.elapsed_s)
    assert (len(down.stdout), down.elapsed_s < 2.0) == (20_000_000, True)
    up = transport.run(["wc", "-c"], stdin=bytes(20_000_000), timeout_s=LIMIT_S)
    record_property("up_s", up.elapsed_s)
    assert (up.stdout, up.elapsed_s < 2.0) == (b"20000000\n", True)


@pytest.mark.alone
def test_a_command_starts_at_once(sshd):
    """On an open connection a command takes well under the 40 ms of a delayed acknowledgement."""
    transport = sshd.transport()
    transport.run(["true"], timeout_s=LIMIT_S)
    times = sorted(transport.run(["true"], timeout_s=LIMIT_S).elapsed_s for _ in range(20))
    assert times[10] < 0.030


def test_thirty_threads_share_one_connection(sshd):
    """30 threads run commands at once over one login, each with its own answer."""
    transport = sshd.transport()

    def echo(number):
        return transport.run(["echo", str(number)], timeout_s=LIMIT_S).stdout

    with ThreadPoolExecutor(30) as threads:
        answers = list(threads.map(echo, range(120)))
    assert answers == [b"%d\n" % number for number in range(120)]
    assert len(sshd.connections()) == 1


def test_more_channels_than_one_connection_takes_come_from_another(sshd):
    """20 commands that stay (sessions) do not block each other: a second login carries them."""
    transport = sshd.transport()
    channels = [transport.open(["cat"], timeout_s=LIMIT_S) for _ in range(20)]
    assert len(sshd.connections()) == 3
    for number, channel in enumerate(channels):
        channel.send(b"%d\n" % number)
    assert [channel.recv(LIMIT_S) for channel in channels] == [b"%d\n" % n for n in range(20)]
    for channel in channels:
        channel.close()


def test_an_sshd_that_takes_fewer_channels_is_understood(make_sshd):
    """With MaxSessions 2 a third command at once waits, or comes from another connection."""
    server = make_sshd(settings=["MaxSessions 2"])
    transport = server.transport()
    first, second = (transport.open(["cat"], timeout_s=LIMIT_S) for _ in range(2))
    assert transport.run(["echo", "third"], timeout_s=LIMIT_S).stdout == b"third\n"
    first.close()
    second.close()


def test_an_sshd_that_takes_no_channel_is_named(make_sshd):
    """MaxSessions 0 is an error that says so, not an endless wait."""
    transport = make_sshd(settings=["MaxSessions 0"]).transport()
    with pytest.raises(ConnectFailed, match="sshd refuses a channel"):
        transport.run(["true"], timeout_s=LIMIT_S)


def test_a_wait_for_a_channel_is_bounded(sshd, monkeypatch):
    """Where no channel becomes free within the limit, nothing has run and the error says so."""
    monkeypatch.setattr(ssh_pool, "MAX_CONNECTIONS", 1)
    transport = sshd.transport(max_channels=1)
    channel = transport.open(["cat"], timeout_s=LIMIT_S)
    started = time.monotonic()
    with pytest.raises(TimedOut) as limit:
        transport.open(["true"], timeout_s=1.5)
    assert time.monotonic() - started < LIMIT_S
    assert str(limit.value) == (
        f"{sshd.address}: no channel was free for 1.5 s\n"
        "Nothing ran. Too many commands run there at once."
    )
    channel.close()


def test_a_line_that_no_shell_takes_is_refused_before_connecting(sshd):
    """A command that cannot cross the login shell is refused without a login."""
    with pytest.raises(EagleError, match="MAX_ARG_STRLEN"):
        sshd.transport().run(["printf", "x" * 131_072], timeout_s=LIMIT_S)
    assert sshd.connections() == []


def test_the_longest_line_that_a_shell_takes_crosses(sshd):
    """An argument just under the limit arrives whole."""
    value = b"x" * (131_071 - len(b"exec '/usr/bin/printf' '%s' ''"))
    completed = sshd.transport().run([b"/usr/bin/printf", b"%s", value], timeout_s=LIMIT_S)
    assert completed.stdout == value


def test_an_address_that_is_none_is_refused_before_connecting():
    """An address that ssh could take for an option is a UsageError."""
    with pytest.raises(UsageError):
        SshTransport("-oProxyCommand=id").run(["true"])


def test_threads_that_wait_for_a_login_share_its_failure(sshd, tmp_path):
    """Ten threads that need one login see one attempt fail, and all learn why."""
    link = sshd.link()
    link.hang()
    options = sshd.options(known_hosts=(tmp_path / "empty",))
    transport = SshTransport(f"{sshd.user}@127.0.0.1:{link.port}", options=options)

    def attempt(_number):
        with pytest.raises(EagleError) as refused:
            transport.run(["true"], timeout_s=LIMIT_S)
        return type(refused.value).__name__

    # The login cannot go on before all the others wait for it.
    acting_when(lambda: len(transport._pool._changed._waiters) == 9, link.resume)
    with ThreadPoolExecutor(10) as threads:
        assert set(threads.map(attempt, range(10))) == {"HostKeyRefused"}
    assert link.connections <= 3


def test_options_are_checked():
    """A host_keys that is neither strict nor accept-new is refused when it is made."""
    with pytest.raises(ValueError, match="host_keys"):
        SshOptions(host_keys="no")


class Unwilling(paramiko.ServerInterface):
    """A server that lets everybody in, opens channels, and runs nothing."""

    def check_auth_publickey(self, _username, _key):
        """Welcome."""
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, _kind, _chanid):
        """Welcome."""
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, _channel, _command):
        """No."""
        return False


@pytest.fixture
def unwilling(ssh_keys):
    """The port of an Unwilling server, played by Paramiko."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _peer = listener.accept()
        server = paramiko.Transport(connection)
        server.add_server_key(paramiko.Ed25519Key(filename=str(ssh_keys.host)))
        server.start_server(server=Unwilling())

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def test_a_server_that_refuses_to_run_commands_is_told(unwilling, ssh_keys, tmp_path):
    """A refused exec is a connection error: nothing ran."""
    options = SshOptions(
        host_keys="accept-new",
        known_hosts=(tmp_path / "known_hosts",),
        identity_files=(ssh_keys.user,),
        config_file=Path("/dev/null"),
    )
    transport = SshTransport(f"root@127.0.0.1:{unwilling}", options=options)
    with pytest.raises(ConnectFailed) as refused:
        transport.run(["true"], timeout_s=LIMIT_S)
    assert str(refused.value) == (
        f"root@127.0.0.1:{unwilling}: sshd refused to run the command\n"
        "Its log says why (journalctl -u ssh): too many processes, for example."
    )
    transport.close()
