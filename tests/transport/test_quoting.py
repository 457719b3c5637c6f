"""argv to a login shell's line: what every shell in use reads from it."""

import subprocess

import pytest
from hypothesis import given, settings

from eagleops.errors import EagleError
from eagleops.transport.quoting import LINE_LIMIT_BYTES, command_line, quote
from parts import needs
from parts.hostile import argvs, long_values

SHELLS = ["dash", "bash", "zsh", "fish", "busybox"]
PRINT = [b"/usr/bin/printf", b"%s\\0"]


@pytest.fixture(params=SHELLS)
def shell(request):
    """A login shell with the -c that sshd gives it."""
    return login_shell(request.param)


def login_shell(name):
    """The argv before the line; the Debian package has the shell's name."""
    path = needs.program(name, name)
    return [path, "sh", "-c"] if name == "busybox" else [path, "-c"]


def words(shell, line, **settings):
    """What /usr/bin/printf gets for arguments when ``shell`` reads ``line``."""
    answer = subprocess.run([*shell, line], capture_output=True, check=False, **settings)
    assert answer.stderr == b""
    return answer.stdout.split(b"\0")[:-1]


@given(argv=argvs)
@settings(max_examples=150)
def test_every_shell_reads_the_same_words(shell, argv):
    """Any argument without NUL comes out of every login shell byte for byte."""
    assert words(shell, command_line([*PRINT, *argv])) == argv


@given(value=long_values(60_000))
@settings(max_examples=10)
def test_a_long_value_is_read_whole(shell, value):
    """60,000 hostile bytes in one argument come out whole, or are refused before they leave."""
    try:
        line = command_line([*PRINT, value])
    except EagleError:
        assert len(quote(value)) > LINE_LIMIT_BYTES - 40
    else:
        assert words(shell, line) == [value]


@pytest.mark.parametrize("name", ["dash", "bash", "fish"])
def test_the_shells_own_functions_and_built_ins_are_passed_by(name, tmp_path):
    """A program is run even where the shell has a built-in of that name (zsh knows no way)."""
    shell = login_shell(name)
    program = tmp_path / "echo"
    program.write_text("#!/bin/sh\nprintf 'the program\\0'\n")
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    assert words(shell, command_line(["echo", "-n"]), env=environment) == [b"the program"]


def test_a_line_reads_well():
    """The line holds nothing that a person would have to decipher."""
    assert (
        command_line(["python3", "-I", "-c", "print('it is')", ""])
        == b"exec 'python3' '-I' '-c' 'print('\\''it is'\\'')' ''"
    )


def test_str_carries_undecodable_bytes():
    """A str argument with surrogate escapes is the bytes that it stands for."""
    assert command_line(["a\udcff"]) == b"exec 'a\xff'"


def test_a_line_that_no_shell_gets_is_refused():
    """A line over MAX_ARG_STRLEN is refused before anything is sent, with the way out."""
    with pytest.raises(EagleError) as refused:
        command_line(["printf", "x" * 131_072])
    assert str(refused.value) == (
        "the command is 131088 bytes long once quoted, and a login shell's one argument holds "
        "at most 131071 (Linux: MAX_ARG_STRLEN 131072)\n"
        "Send long values over stdin or in a session's request: neither has a limit."
    )


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ([], "a command needs at least one argument"),
        (["printf", "a\0b"], "argument 1 has a NUL byte, which exec cannot pass on"),
    ],
)
def test_what_exec_cannot_take_is_refused(argv, problem):
    """No arguments, or a NUL byte in one, is a ValueError that says which."""
    with pytest.raises(ValueError, match=problem):
        command_line(argv)


@pytest.mark.parametrize("text", ["w", b"w", "echo x"])
def test_one_text_is_no_command(text):
    """To Python it is a list of its characters, and the first of them may be a program."""
    with pytest.raises(TypeError, match="a command is a list of words, not one text"):
        command_line(text)
