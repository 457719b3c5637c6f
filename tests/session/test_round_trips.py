"""What a command costs on a long line: one exec a target, then one round trip an operation."""

import functools
import time

import pytest

from eagleops.session import Session
from eagleops.transport.inside import InsideTransport

RTT_S = 0.2


class Counting:
    """A transport that counts what is started through it."""

    def __init__(self, inner):
        self._inner = inner
        self.execs = 0
        self.where = inner.where
        self.explain, self.adapt, self.close = inner.explain, inner.adapt, inner.close

    def open(self, argv, *, timeout_s=None):
        self.execs += 1
        return self._inner.open(argv, timeout_s=timeout_s)

    def run(self, argv, *, stdin=b"", timeout_s=None):
        self.execs += 1
        return self._inner.run(argv, stdin=stdin, timeout_s=timeout_s)


def best_s(action, times):
    """The shortest time of ``action`` in seconds: a busy machine only ever adds to it."""
    taken = []
    for _ in range(times):
        started = time.monotonic()
        action()
        taken.append(time.monotonic() - started)
    return min(taken)


def round_trips(sshd, prepare, times=5):
    """The slope of an action's time over the round trip time.

    ``prepare(transport_maker)`` makes the action for a line of some delay.
    """
    taken = [
        best_s(prepare(functools.partial(sshd.transport, via=sshd.link(delay_s=delay_s))), times)
        for delay_s in (0.0, RTT_S / 2)
    ]
    return (taken[1] - taken[0]) / RTT_S


def test_a_session_is_one_exec(way, open_session):
    """Whatever is asked of it, a session starts one command on the target."""
    counting = Counting(way)
    session = open_session(counting)
    for _ in range(10):
        session.call("execute", argv=["true"])
    assert counting.execs == 1


def test_a_container_is_one_exec_of_its_host(sshd, container, open_session):
    """Through pct a session is one command on the Proxmox host too."""
    host = Counting(sshd.transport())
    session = open_session(InsideTransport(host, container.wrapper))
    session.call("execute", argv=["true"])
    assert host.execs == 1


@pytest.mark.alone
@pytest.mark.parametrize("into", ["host", "container"])
def test_an_operation_costs_one_round_trip(sshd, container, open_session, into, record_property):
    """The slope of an operation's time over the round trip time is 1, on the host and inside."""

    def prepare(connect):
        transport = connect() if into == "host" else container.inside(connect())
        return functools.partial(open_session(transport).call, "execute", argv=["true"])

    slope = round_trips(sshd, prepare)
    record_property("round_trips", slope)
    assert 0.95 < slope < 1.2


@pytest.mark.alone
def test_a_session_on_an_open_connection_opens_in_three_round_trips(sshd, record_property):
    """Channel, exec, and the program for its hello: sshd takes no input before the exec."""

    def prepare(connect):
        transport = connect()
        transport.run(["true"])
        return lambda: Session.open(transport).close()

    slope = round_trips(sshd, prepare)
    record_property("round_trips", slope)
    assert round(slope) == 3


@pytest.mark.alone
def test_a_login_and_a_command_cost_what_ssh_costs(sshd, record_property):
    """A cold run is a login, a channel and an exec: OpenSSH's own takes 7.6 round trips."""
    slope = round_trips(sshd, lambda connect: lambda: connect().run(["true"]), times=3)
    record_property("round_trips", slope)
    assert 5 <= round(slope) <= 7
