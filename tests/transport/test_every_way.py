"""What every transport does alike: on this machine, over SSH, and into a container."""

import secrets
import signal
import time

import pytest

from eagleops.errors import NoInterpreter, TimedOut
from eagleops.transport.inside import InsideTransport
from eagleops.transport.local import LocalTransport
from eagleops.transport.tail import TAIL_BYTES
from parts.poll import processes_with, until

LIMIT_S = 30.0


def test_a_command_is_run_to_its_end(way):
    """Both streams, the exit status and the argv come back."""
    argv = ["sh", "-c", "echo out; echo err >&2; exit 7"]
    completed = way.run(argv, timeout_s=LIMIT_S)
    assert (completed.stdout, completed.stderr, completed.exit_status, completed.argv) == (
        b"out\n",
        b"err\n",
        7,
        tuple(map(str.encode, argv)),
    )
    assert 0 < completed.elapsed_s < LIMIT_S


def test_stdin_ends_where_nothing_is_given(way):
    """A command that reads stdin finds its end at once, never a terminal."""
    assert way.run(["cat"], timeout_s=LIMIT_S).stdout == b""


def test_stdin_arrives_whole_while_output_flows(way):
    """4 MiB in and 4 MiB out at the same time neither block each other nor change."""
    data = secrets.token_bytes(4 * 1024 * 1024)
    assert way.run(["cat"], stdin=data, timeout_s=LIMIT_S).stdout == data


def test_neither_stream_blocks_the_other(way):
    """3 MiB on stderr before a word on stdout do not hang; the last 1 MiB is kept."""
    script = "head -c 3145728 /dev/zero >&2; echo tail >&2; echo done"
    completed = way.run(["sh", "-c", script], timeout_s=LIMIT_S)
    assert (completed.stdout, len(completed.stderr), completed.stderr[-5:]) == (
        b"done\n",
        TAIL_BYTES,
        b"tail\n",
    )


def test_a_command_may_leave_its_stdin_unread(way):
    """A command that ends without reading 8 MiB of stdin is no error."""
    completed = way.run(["true"], stdin=bytes(8 * 1024 * 1024), timeout_s=LIMIT_S)
    assert completed.exit_status == 0


def test_a_signal_that_ended_a_command_is_told(way):
    """A killed command has a negative status; lxc-attach says 128 + the signal, as a shell."""
    killed = -signal.SIGKILL if not isinstance(way, InsideTransport) else 128 + signal.SIGKILL
    completed = way.run(["sh", "-c", "echo out; kill -9 $$"], timeout_s=LIMIT_S)
    assert (completed.stdout, completed.exit_status) == (b"out\n", killed)


def test_a_program_that_is_not_there_fails_as_in_a_shell(way):
    """An unknown program is an ordinary failure with status 127 and a line on stderr."""
    completed = way.run(["no-such-program-here"], timeout_s=LIMIT_S)
    assert (completed.exit_status, b"no-such-program-here" in completed.stderr) == (127, True)


def test_a_command_that_does_not_end_is_left_after_the_limit(way):
    """The time limit bounds the whole run, and its error says that the outcome is unknown."""
    way.run(["true"], timeout_s=LIMIT_S)  # a login has a limit of its own
    started = time.monotonic()
    with pytest.raises(TimedOut) as limit:
        way.run(["sleep", "60"], timeout_s=1.0)
    assert time.monotonic() - started < LIMIT_S
    assert str(limit.value) == f"{way.where}: sleep did not end within 1 s; it may still run"
    assert limit.value.limit_s == 1.0


def test_a_channel_goes_both_ways(way):
    """An open channel sends and receives while the command runs, and tells its end."""
    channel = way.open(["cat"], timeout_s=LIMIT_S)
    channel.send(b"first\n")
    assert channel.recv(LIMIT_S) == b"first\n"
    channel.send(b"second\n")
    assert channel.recv(LIMIT_S) == b"second\n"
    channel.send_eof()
    assert channel.recv(LIMIT_S) == b""
    assert channel.wait(LIMIT_S) == 0
    channel.close()
    channel.close()


def test_a_silent_command_is_noticed_within_the_limit(way):
    """Recv and wait raise TimedOut when nothing comes within their limit; the channel lives."""
    channel = way.open(["cat"], timeout_s=LIMIT_S)
    for ask in (channel.recv, channel.wait):
        started = time.monotonic()
        with pytest.raises(TimedOut):
            ask(0.2)
        assert 0.15 < time.monotonic() - started < LIMIT_S
    channel.send(b"still here\n")
    assert channel.recv(LIMIT_S) == b"still here\n"
    channel.close()


def test_a_closed_channel_takes_stdin_away(way):
    """A command that reads stdin ends when its channel is closed, and leaves no process."""
    word = f"waits-{secrets.token_hex(8)}"
    channel = way.open(["sh", "-c", f"echo; cat; : {word}"], timeout_s=LIMIT_S)
    assert channel.recv(LIMIT_S) == b"\n"
    assert processes_with(word)
    channel.close()
    until(lambda: not processes_with(word))


def test_no_shell_on_the_way_reads_the_argv(way):
    """What a shell would expand, split or end arrives as it was given."""
    hostile = ["$HOME", "`id`", "a b", "'", '"', "\\", "*", "", "\n", "-n", "é\udcff"]
    completed = way.run(["/usr/bin/printf", "%s\\0", *hostile], timeout_s=LIMIT_S)
    assert completed.stdout == b"".join(
        word.encode("utf-8", "surrogateescape") + b"\0" for word in hostile
    )


def test_an_environment_may_replace_the_local_one(monkeypatch):
    """A local transport with an environment of its own hands on nothing else."""
    monkeypatch.setenv("EAGLEOPS_TEST", "leak")
    completed = LocalTransport(env={"PATH": "/usr/bin:/bin", "A": "b\udcff"}).run(["env", "-0"])
    assert sorted(completed.stdout.split(b"\0")) == [b"", b"A=b\xff", b"PATH=/usr/bin:/bin"]


def test_a_file_that_cannot_be_run_fails_as_in_a_shell(tmp_path):
    """Without the right to run it, a local program fails with status 126 and the reason."""
    program = tmp_path / "program"
    program.touch(mode=0o644)
    completed = LocalTransport().run([str(program)])
    assert (completed.exit_status, completed.stderr) == (
        126,
        f"{program}: Permission denied\n".encode(),
    )


def test_nothing_of_a_command_stands_in_its_error(way):
    """The error of a run names the program alone: arguments may be secret."""
    way.run(["true"], timeout_s=LIMIT_S)  # a login has a limit of its own
    with pytest.raises(TimedOut) as limit:
        way.run(["sh", "-c", "sleep 20 # hf_secret"], timeout_s=0.7)
    assert "hf_secret" not in str(limit.value)
    assert not isinstance(limit.value, NoInterpreter)
