"""What breaks under a session: every way to lose it is an unknown outcome, told in time."""

import base64
import secrets
import threading
import time

import pytest

from eagleops.errors import LinkLost, NoInterpreter, TimedOut, Unreachable
from eagleops.session import Session
from parts.poll import acting_when, processes_with, until

LOOK = "Look before you act: eagleops status."
# A test that waits so long has hung.
LIMIT_S = 30.0


def sleeper():
    """A command that sleeps for a minute, and whether it runs."""
    argv = ["sleep", f"60.{secrets.randbelow(10**9):09d}"]
    return argv, lambda: processes_with(argv[1])


def logged_in(server):
    """A transport that is logged in, and has started no shell."""
    transport = server.transport()
    transport.connect(server.host, server.port, timeout_s=LIMIT_S).close()
    return transport


@pytest.fixture
def link(sshd):
    """A way to the sshd that can hang and be cut."""
    return sshd.link()


@pytest.fixture
def session(sshd, link, open_session):
    """A session over that way."""
    return open_session(sshd.transport(via=link))


def test_a_cut_link_is_an_unknown_outcome(session, link):
    """A link cut while an operation runs is LinkLost at once, with what to do."""
    argv, runs = sleeper()
    acting_when(runs, link.cut)
    started = time.monotonic()
    with pytest.raises(LinkLost) as lost:
        session.call("execute", argv=argv)
    assert time.monotonic() - started < LIMIT_S
    assert str(lost.value) == (
        f"{session.where}: execute: the link was lost, the outcome is unknown\n{LOOK}"
    )
    assert session.usable is False


def test_a_killed_sshd_is_an_unknown_outcome(sshd, session):
    """So is an sshd killed while an operation runs, and what ran over there ends."""
    argv, runs = sleeper()
    acting_when(runs, sshd.kill_connections)
    with pytest.raises(LinkLost, match="the outcome is unknown"):
        session.call("execute", argv=argv)
    until(lambda: not runs(), limit_s=LIMIT_S)


def test_a_silent_link_is_an_unknown_outcome(session, link):
    """A link that hangs without closing is noticed by its silence."""
    argv, runs = sleeper()
    acting_when(runs, link.hang)
    started = time.monotonic()
    with pytest.raises(TimedOut) as silent:
        session.call("execute", argv=argv, silence_s=2.0)
    assert 1.9 < time.monotonic() - started < LIMIT_S
    assert str(silent.value) == (
        f"{session.where}: execute: nothing was heard for 2 s, the outcome is unknown\n{LOOK}"
    )
    assert session.usable is False


def test_a_link_that_is_only_slow_is_no_silence(session, link):
    """A pause shorter than the limit loses nothing."""
    link.hang()
    threading.Timer(1.0, link.resume).start()
    result = session.call("execute", argv=["echo", "late"], silence_s=10.0)
    assert base64.b64decode(result["stdout"]) == b"late\n"


def test_a_link_that_hangs_while_a_session_opens_is_noticed(sshd, link):
    """The start of a session has a limit, whatever hangs."""
    transport = sshd.transport(via=link)
    transport.run(["true"], timeout_s=LIMIT_S)
    link.hang()
    started = time.monotonic()
    with pytest.raises(Unreachable):
        Session.open(transport, timeout_s=1.5)
    assert time.monotonic() - started < LIMIT_S


def test_a_link_that_hangs_in_the_middle_of_the_program_is_noticed(sshd, link):
    """A link that takes half of the remote package is noticed too."""
    transport = sshd.transport(via=link)
    transport.run(["true"], timeout_s=LIMIT_S)
    link.hang_after(8000)
    started = time.monotonic()
    with pytest.raises(TimedOut, match=r"python3 did not answer within 3 s"):
        Session.open(transport, timeout_s=3.0)
    assert time.monotonic() - started < LIMIT_S


def test_another_session_over_the_same_connection_lives_on(sshd, open_session):
    """One session that was given up does not take the connection from under another."""
    transport = sshd.transport()
    first, second = open_session(transport), open_session(transport)
    first.close()
    assert second.call("execute", argv=["true"])["exit_status"] == 0
    assert len(sshd.connections()) == 1


def test_what_a_login_shell_prints_is_passed_over(make_sshd, tmp_path, open_session):
    """A .bashrc that prints, even half a megabyte or what looks like an event, is skipped."""
    (tmp_path / ".bashrc").write_text(
        "echo welcome\n"
        'echo \'{"id": 1, "event": "done"}\'\n'
        "head -c 500000 /dev/zero | tr '\\0' x\n"
        "echo -n no end of line\n"
    )
    server = make_sshd(environment={"HOME": str(tmp_path)})
    session = open_session(server.transport())
    result = session.call("execute", argv=["echo", "answer"])
    assert base64.b64decode(result["stdout"]) == b"answer\n"


def test_a_login_shell_that_prints_without_end_is_given_up(make_sshd, tmp_path):
    """Endless chatter ends at the limit, and takes no memory meanwhile."""
    (tmp_path / ".bashrc").write_text("yes chatter\n")
    server = make_sshd(environment={"HOME": str(tmp_path)})
    transport = logged_in(server)
    started = time.monotonic()
    with pytest.raises(TimedOut) as endless:
        Session.open(transport, timeout_s=1.5)
    assert time.monotonic() - started < LIMIT_S
    assert str(endless.value) == (
        f"{server.address}: python3 did not answer within 1.5 s\n"
        "Does the login shell wait for something, or print without end?"
    )
    until(lambda: server.connections() != [])


def test_a_login_shell_that_waits_is_given_up(make_sshd, tmp_path):
    """A .bashrc that waits for an answer gets the program for it, and is told apart."""
    (tmp_path / ".bashrc").write_text("exec sleep 30\n")
    server = make_sshd(environment={"HOME": str(tmp_path)})
    transport = logged_in(server)
    with pytest.raises(TimedOut, match="Does the login shell wait for something"):
        Session.open(transport, timeout_s=1.0)


def test_an_account_that_lets_nobody_in_is_told(make_sshd):
    """A login shell that says no is no missing network: its words are in the error."""
    server = make_sshd(settings=["ForceCommand echo This account is not available. >&2; exit 1"])
    with pytest.raises(NoInterpreter, match=r"\(exit status 1\): This account is not available\."):
        Session.open(server.transport())
