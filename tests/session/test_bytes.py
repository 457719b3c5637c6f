"""Hostile bytes through a session's ``execute``: argv, environment values, stdin, sizes."""

import base64
import os
import time

import pytest
from hypothesis import given, settings

from parts.hostile import argvs, environments, long_values, values


def through(session, argv, **arguments):
    """What a command printed."""
    result = session.call("execute", argv=[os.fsdecode(word) for word in argv], **arguments)
    assert (result["exit_status"], result["stderr"]) == (0, "")
    return base64.b64decode(result["stdout"])


def text(environment):
    """An environment as JSON carries it."""
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}


@pytest.fixture
def ssh_session(sshd, open_session):
    """A session over SSH."""
    return open_session(sshd.transport())


@pytest.fixture
def pct_session(sshd, container, open_session):
    """A session over SSH and pct."""
    return open_session(container.inside(sshd.transport()))


def environment_arrives(session, environment):
    """Compares what env prints with what was given."""
    printed = through(session, [b"/usr/bin/env", b"-0"], env=text(environment))
    assert dict(line.split(b"=", 1) for line in printed.split(b"\0")[:-1]) == environment


@given(environment=environments)
@settings(max_examples=1000)
def test_any_environment_arrives_over_ssh(ssh_session, environment):
    """1,000 hostile environments arrive byte for byte over SSH."""
    environment_arrives(ssh_session, environment)


@given(environment=environments)
@settings(max_examples=200)
def test_any_environment_arrives_in_a_container(pct_session, environment):
    """200 hostile environments arrive byte for byte over SSH and pct."""
    environment_arrives(pct_session, environment)


@given(argv=argvs, stdin=values)
@settings(max_examples=200)
def test_any_argv_and_stdin_arrive_in_a_container(pct_session, argv, stdin):
    """200 hostile argvs and stdins arrive byte for byte over SSH and pct."""
    script = [b"/bin/sh", b"-c", b'printf "%s\\0" "$@"; cat', b"sh"]
    printed = through(pct_session, [*script, *argv], stdin=base64.b64encode(stdin).decode(), env={})
    assert printed == b"".join(word + b"\0" for word in argv) + stdin


@given(value=long_values(64 * 1024))
@settings(max_examples=20)
def test_64_kib_arrive_in_a_container(pct_session, value):
    """64 KiB of hostile bytes in one argument and in one value arrive: no shell is in the way."""
    printed = through(pct_session, [b"/usr/bin/printf", b"%s", value])
    assert printed == value
    environment_arrives(pct_session, {b"VALUE": value})


def test_what_exec_itself_refuses_is_told(ssh_session):
    """An argument that the kernel takes from nobody is a typed failure, in the kernel's words."""
    with pytest.raises(Exception, match="Argument list too long") as refused:
        through(ssh_session, [b"/bin/true", b"x" * 200_000])
    assert refused.value.kind == "not_executable"


@pytest.mark.parametrize(
    "arguments", [{"argv": ["true", "a\0b"]}, {"argv": ["true"], "env": {"A=B": "c"}}]
)
def test_what_no_exec_can_take_is_told(ssh_session, arguments):
    """A NUL byte, or a name with =, is a typed failure."""
    with pytest.raises(Exception, match="true: ") as refused:
        ssh_session.call("execute", **arguments)
    assert refused.value.kind == "bad_argument"


@pytest.mark.alone
@pytest.mark.parametrize("way", ["ssh", "ssh+pct"], indirect=True)
def test_twenty_megabytes_take_less_than_two_seconds(way, open_session, record_property):
    """20 MB of output come through a session in under 2 s."""
    session = open_session(way)
    started = time.monotonic()
    result = session.call("execute", argv=["head", "-c", "20000000", "/dev/zero"])
    elapsed_s = time.monotonic() - started
    record_property("elapsed_s", elapsed_s)
    assert len(base64.b64decode(result["stdout"])) == 20_000_000
    assert elapsed_s < 2.0


def test_too_much_output_ends_the_command(ssh_session):
    """A command that prints without end is ended at the bound, not cut silently."""
    with pytest.raises(Exception, match="yes wrote more than 1000000 bytes") as refused:
        ssh_session.call("execute", argv=["yes"], max_bytes=1_000_000)
    assert refused.value.kind == "too_much_output"
