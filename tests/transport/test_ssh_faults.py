"""What breaks between two machines: a peer that hangs, a link that is cut, an sshd killed."""

import secrets
import socket
import threading
import time
from pathlib import Path

import pytest

from eagleops.errors import ConnectFailed, LinkLost, TimedOut, Unreachable
from eagleops.transport import ssh_transport
from parts.poll import acting_when, processes_with, until

LIMIT_S = 30.0


@pytest.fixture
def link(sshd):
    """A way to the sshd that can hang and be cut."""
    return sshd.link()


@pytest.fixture
def transport(sshd, link):
    """A transport over that way, logged in."""
    transport = sshd.transport(via=link)
    transport.run(["true"], timeout_s=LIMIT_S)
    return transport


def seconds(action):
    """How long ``action`` takes; where it would hang that is LIMIT_S and more."""
    started = time.monotonic()
    action()
    return time.monotonic() - started


class Sleeper:
    """A command that sleeps for a minute, and is told from every other one."""

    def __init__(self):
        self.argv = ["sleep", f"60.{secrets.randbelow(10**9):09d}"]

    def runs(self):
        """Whether it runs: itself, and no shell on the way to it any more."""
        return any(_name(pid) == "sleep" for pid in processes_with(self.argv[1]))


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def test_a_peer_that_hangs_is_noticed_while_a_command_runs(transport, link):
    """A link that passes nothing on and closes nothing ends a run within its limit."""
    sleeper = Sleeper()
    acting_when(sleeper.runs, link.hang)

    def run():
        with pytest.raises(TimedOut, match=r"did not end within 3 s; it may still run"):
            transport.run(sleeper.argv, timeout_s=3.0)

    assert seconds(run) < LIMIT_S


def test_a_peer_that_hangs_is_noticed_while_a_channel_opens(transport, link):
    """The limit holds for the opening of a channel too, where Paramiko would wait an hour."""
    link.hang()

    def open_channel():
        with pytest.raises(TimedOut, match="nothing came within"):
            transport.open(["true"], timeout_s=1.0)

    assert seconds(open_channel) < LIMIT_S


def test_a_peer_that_hangs_is_noticed_by_the_channel_limit(sshd, link):
    """Without a limit of the caller's, the option's own bounds the opening: here twice 3 s."""
    transport = sshd.transport(via=link, channel_timeout_s=3.0, connect_timeout_s=3.0)
    transport.run(["true"], timeout_s=LIMIT_S)
    link.hang()

    def open_channel():
        with pytest.raises(Unreachable):
            transport.open(["true"])

    assert seconds(open_channel) < LIMIT_S


def test_a_peer_that_hangs_is_noticed_during_the_login(sshd, link):
    """A login over a link that passes nothing is given up within the limit: nothing ran."""
    link.hang()
    transport = sshd.transport(via=link)

    def log_in():
        with pytest.raises(ConnectFailed, match=r"no login to .* within 1 s"):
            transport.run(["true"], timeout_s=1.0)

    assert seconds(log_in) < LIMIT_S


@pytest.mark.parametrize("after_bytes", [100, 1500, 2500, 3500])
def test_a_peer_that_falls_silent_in_the_middle_of_a_login_is_noticed(sshd, link, after_bytes):
    """Whatever step of the login the peer stops in, the limit holds."""
    link.hang_after(after_bytes)
    transport = sshd.transport(via=link)

    def log_in():
        with pytest.raises(Unreachable):
            transport.run(["sleep", "60"], timeout_s=1.5)

    assert seconds(log_in) < LIMIT_S


def test_a_peer_that_hangs_while_it_should_read_is_noticed(transport, link):
    """50 MB of stdin into a link that takes nothing more end within the limit too."""
    threading.Timer(0.2, link.hang).start()

    script = "sleep 1; cat >/dev/null; sleep 60"

    def run():
        with pytest.raises(TimedOut):
            transport.run(["sh", "-c", script], stdin=bytes(50_000_000), timeout_s=2.0)

    assert seconds(run) < LIMIT_S


def test_a_link_that_recovers_loses_nothing(transport, link):
    """A pause shorter than the limit is only a pause."""
    channel = transport.open(["cat"], timeout_s=LIMIT_S)
    link.hang()
    channel.send(b"late\n")
    with pytest.raises(TimedOut):
        channel.recv(0.5)
    link.resume()
    assert channel.recv(LIMIT_S) == b"late\n"
    channel.close()


def test_a_cut_link_is_lost_not_failed(transport, link):
    """A link that is cut while a command runs is LinkLost at once: no exit status is made up."""
    sleeper = Sleeper()
    acting_when(sleeper.runs, link.cut)

    def run():
        with pytest.raises(LinkLost) as lost:
            transport.run(sleeper.argv)
        assert str(lost.value).endswith("sleep: the link broke; its outcome is unknown")

    assert seconds(run) < LIMIT_S


def test_a_killed_sshd_is_a_lost_link(sshd, transport):
    """So is the sshd process of the connection, killed while a command runs."""
    sleeper = Sleeper()
    acting_when(sleeper.runs, sshd.kill_connections)
    with pytest.raises(LinkLost):
        transport.run(sleeper.argv)


def test_output_that_came_before_the_cut_is_not_the_whole(transport, link):
    """Half an output is no result: a command whose link was cut raises, whatever it printed."""
    channel = transport.open(["sh", "-c", "echo half; exec sleep 60"], timeout_s=LIMIT_S)
    assert channel.recv(LIMIT_S) == b"half\n"
    link.cut()
    with pytest.raises(LinkLost):
        channel.recv(LIMIT_S)
    with pytest.raises(LinkLost):
        channel.wait(LIMIT_S)
    with pytest.raises(LinkLost):
        channel.send(b"x")
    channel.send_eof()
    channel.close()


def test_a_dead_connection_is_made_anew_before_anything_runs(sshd, transport, link):
    """A connection found dead is replaced by a new login, unseen by the caller."""
    sshd.kill_connections()
    assert transport.run(["echo", "again"], timeout_s=LIMIT_S).stdout == b"again\n"
    assert link.connections == 2


def test_a_connection_that_hung_is_left_for_a_new_one(sshd, link):
    """A connection that did not answer gets no more commands; a new login is made."""
    transport = sshd.transport(via=link, channel_timeout_s=2.0)
    transport.run(["true"], timeout_s=LIMIT_S)
    link.hang()
    acting_when(lambda: link.connections == 2, link.resume)
    assert transport.run(["echo", "again"], timeout_s=LIMIT_S).stdout == b"again\n"
    assert link.connections == 2


def test_one_channel_that_times_out_leaves_the_others_alone(transport):
    """A run over its limit does not take the connection from under another command."""
    other = transport.open(["cat"], timeout_s=LIMIT_S)
    with pytest.raises(TimedOut):
        transport.run(["sleep", "60"], timeout_s=0.5)
    other.send(b"alive\n")
    assert other.recv(LIMIT_S) == b"alive\n"
    other.close()


def test_nothing_is_left_after_a_transport_is_closed(sshd, transport):
    """Closing a transport ends its connections and the threads that read them."""
    channel = transport.open(["cat"], timeout_s=LIMIT_S)
    transport.close()
    until(lambda: sshd.connections() == [])
    with pytest.raises(LinkLost):
        channel.recv(LIMIT_S)
    channel.close()
    until(lambda: not [thread for thread in threading.enumerate() if _reads_a_link(thread)])


def test_a_command_is_not_held_up_by_another_ones_stuck_input(transport, link):
    """While one thread's 50 MB are stuck in a hung link, another's limit still holds."""
    _narrow(transport)
    stuck = threading.Thread(target=lambda: _expect_unreachable(transport, bytes(50_000_000)))
    stuck.start()
    _stop_reading_in_the_middle(link)
    until(lambda: _socket_is_stuck(transport))

    def open_channel():
        with pytest.raises(Unreachable):
            transport.open(["true"], timeout_s=1.0)

    assert seconds(open_channel) < LIMIT_S
    link.cut()
    stuck.join(LIMIT_S)
    assert not stuck.is_alive()


def test_a_stuck_input_is_given_up_after_a_while(transport, link, monkeypatch):
    """Without any limit of the caller's, a socket that takes nothing for so long is lost."""
    _narrow(transport)
    monkeypatch.setattr(ssh_transport, "STALL_LIMIT_S", 2.0)
    threading.Thread(target=_stop_reading_in_the_middle, args=(link,)).start()

    def run():
        with pytest.raises(LinkLost):
            transport.run(["sh", "-c", "cat >/dev/null"], stdin=bytes(50_000_000))

    assert seconds(run) < LIMIT_S


def test_a_peer_that_hangs_is_noticed_without_any_limit(sshd, link):
    """A command without a time limit ends when its peer has not answered three keepalives."""
    transport = sshd.transport(via=link, keepalive_s=0.5)
    sleeper = Sleeper()
    acting_when(sleeper.runs, link.hang)

    def run():
        with pytest.raises(LinkLost):
            transport.run(sleeper.argv)

    assert seconds(run) < LIMIT_S


def test_a_silent_command_is_no_silent_peer(sshd, link):
    """A command that says nothing for many keepalives runs on: sshd answers for it."""
    transport = sshd.transport(via=link, keepalive_s=0.5)
    assert transport.run(["sleep", "4"], timeout_s=LIMIT_S).exit_status == 0
    assert link.connections == 1


def test_an_idle_connection_that_died_is_replaced_unseen(sshd, link):
    """A link that died while nothing ran costs the next command a login, and no error."""
    transport = sshd.transport(via=link, keepalive_s=0.5)
    transport.run(["true"], timeout_s=LIMIT_S)
    link.hang()
    until(lambda: not [thread for thread in threading.enumerate() if _reads_a_link(thread)])
    link.resume()
    assert transport.run(["echo", "again"], timeout_s=LIMIT_S).stdout == b"again\n"
    assert link.connections == 2


def _expect_unreachable(transport, stdin):
    with pytest.raises(Unreachable):
        transport.run(["sh", "-c", "cat >/dev/null"], stdin=stdin, timeout_s=20.0)


def _connection(transport):
    return transport._pool._connections[0].transport


def _narrow(transport):
    """Gives the socket a small buffer: Paramiko's window of 2 MiB would fit into loopback's."""
    _connection(transport).sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)


def _stop_reading_in_the_middle(link):
    until(lambda: link.bytes_carried > 5_000_000)
    link.stop_reading()


def _socket_is_stuck(transport):
    return _connection(transport)._packets.stall_s > 0.3


def _reads_a_link(thread):
    return isinstance(thread, ssh_transport.Transport)
