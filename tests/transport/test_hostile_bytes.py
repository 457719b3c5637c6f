"""Hostile bytes through every way: what exec allows arrives byte for byte.

1,000 examples go over SSH and 200 over SSH and pct, each with up to 8 arguments; the same
for a session's environment values is in tests/session.
"""

import pytest
from hypothesis import given, settings

from eagleops.errors import EagleError
from eagleops.transport.quoting import command_line
from parts.hostile import argvs, long_values

LIMIT_S = 60.0
PRINT = (b"/usr/bin/printf", b"%s\\0")


def arrived(transport, argv):
    """The arguments that a program at the other end gets."""
    completed = transport.run([*PRINT, *argv], timeout_s=LIMIT_S)
    assert (completed.exit_status, completed.stderr) == (0, b"")
    return completed.stdout.split(b"\0")[:-1]


@given(argv=argvs)
@settings(max_examples=1000)
def test_any_argv_arrives_over_ssh(sshd_transport, argv):
    """Over SSH and its login shell, 1,000 hostile argvs arrive byte for byte."""
    assert arrived(sshd_transport, argv) == argv


@given(argv=argvs)
@settings(max_examples=200)
def test_any_argv_arrives_in_a_container(sshd_transport, container, argv):
    """Over SSH and pct, 200 hostile argvs arrive byte for byte."""
    assert arrived(container.inside(sshd_transport), argv) == argv


@pytest.mark.parametrize("shell", ["dash", "zsh", "fish"])
@given(argv=argvs)
@settings(max_examples=50)
def test_any_argv_arrives_through_another_login_shell(shell_transports, shell, argv):
    """dash, zsh and fish behind sshd read the same line as bash does."""
    assert arrived(shell_transports(shell), argv) == argv


@given(value=long_values(64 * 1024))
@settings(max_examples=20)
def test_64_kib_arrive_or_are_refused_before_they_leave(sshd_transport, container, value):
    """64 KiB of hostile bytes arrive whole; only a line that no shell could take is refused."""
    inside = container.inside(sshd_transport)
    try:
        command_line(container.wrapper.argv([*PRINT, value]))
    except EagleError:
        with pytest.raises(EagleError, match="MAX_ARG_STRLEN"):
            arrived(inside, [value])
    else:
        assert arrived(inside, [value]) == [value]


@given(value=long_values(64 * 1024))
@settings(max_examples=20)
def test_64_kib_of_stdin_arrive_in_a_container(sshd_transport, container, value):
    """What is too long or too secret for a command line goes over stdin, whole."""
    inside = container.inside(sshd_transport)
    assert inside.run(["cat"], stdin=value, timeout_s=LIMIT_S).stdout == value
