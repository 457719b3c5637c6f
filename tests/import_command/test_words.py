"""Words mean to the reader what they mean to bash, wherever the reader vouches for them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleops.shell import Unreadable, expand, read

BASH = shutil.which("bash")
VARIABLES = {"MODEL": "/m/a b", "EMPTY": "", "N": "7", "HOME": "/root"}
needs_bash = pytest.mark.skipif(BASH is None, reason="bash is not installed")

plain = st.text("abcXYZ019-_=+:,./@%^~{}[]#", max_size=6)
quoted = st.one_of(
    st.text('ab $`\\"!*?{}~;&|<>\n', max_size=6).map(lambda t: f"'{t}'"),
    st.text("ab '!*?{},~;&|<>\n", max_size=6).map(lambda t: f'"{t}"'),
    st.sampled_from([r"\ ", r"\$", r"\\", r"\"", r"\'", r"\a", r"\*", r"\~", r"\{", "\\\n"]),
    st.sampled_from([r'"\$"', r'"\\"', r'"a\"b"', r'"\a"', '"\\\n"', r"$'a\tb'", r"$'\x41\''"]),
    st.sampled_from(["$MODEL", '"$MODEL"', "${MODEL}", '"${N}x"', "$EMPTY", '"$EMPTY"']),
    st.sampled_from(["${N:-9}", "${NONE:-9}", "$", '"$"', "${EMPTY:-x}", "${EMPTY-x}", "$'\\e['"]),
    st.sampled_from(["~", "~/x", "A=~/x", "A=a:~/b", "--x=~/y", "é", "日本", "''", '""']),
)
words = st.lists(st.one_of(plain, quoted), min_size=1, max_size=4).map("".join)


def of_bash(line: str) -> list[str] | None:
    """The words that bash hands to a program; None if it refuses the line."""
    done = subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", f"printf '%s\\0' {line}"],
        env={**VARIABLES, "LC_ALL": "C.UTF-8"},
        cwd="/var/empty" if shutil.os.path.isdir("/var/empty") else "/proc/self/fdinfo",
        capture_output=True,
        timeout=120,
        check=False,
    )
    if done.returncode or done.stderr:
        return None
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def of_reader(line: str) -> list[str] | None:
    """The words that the reader vouches for; None where it does not."""
    try:
        script = read(f"printf '%s\\0' {line}\n")
    except Unreadable:
        return None
    if len(script.commands) != 1 or script.slips:
        return None
    command = script.commands[0]
    if command.unreadable or command.redirections or command.assignments:
        return None
    found: list[str] = []
    for raw in command.words[2:]:
        expansion = expand(raw, VARIABLES, home="/root")
        if any(doubt.kind != "default" for doubt in expansion.doubts):
            return None
        found += expansion.fields
    # printf without an argument prints its format once, with nothing in it.
    return found or [""]


@needs_bash
@settings(max_examples=150, deadline=None)
@given(st.lists(words, min_size=1, max_size=3).map(" ".join))
def test_words_are_what_bash_makes_of_them(line: str) -> None:
    """Whatever the reader vouches for, bash hands on the same."""
    claimed = of_reader(line)

    if claimed is not None and "\0" not in line:
        assert claimed == of_bash(line)


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        ("$MODEL", ("/m/a", "b")),
        ('"$MODEL"', ("/m/a b",)),
        ("$EMPTY", ()),
        ('""', ("",)),
        (r"a\ b", ("a b",)),
        (r"'a'\''b'", ("a'b",)),
        (r"$'a\nb'", ("a\nb",)),
        ("~/x", ("/root/x",)),
        ("--model=~/x", ("--model=~/x",)),
        ("${NONE:-9}", ("9",)),
    ],
)
def test_a_word_becomes_its_fields(raw: str, fields: tuple[str, ...]) -> None:
    """Quotes go, variables come, and what is not quoted is split."""
    assert expand(raw, VARIABLES, home="/root").fields == fields


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("$(date)", "substitution"),
        ("`date`", "substitution"),
        ("$NONE", "unset"),
        ("${X%y}", "special"),
        ("$1", "special"),
        ("*.py", "glob"),
        ("{a,b}", "braces"),
        ('{"a":1,"b":2}', "braces"),
        ("~joe/x", "home"),
    ],
)
def test_what_only_running_would_tell_is_a_doubt(raw: str, kind: str) -> None:
    """The reader says what it does not know, and runs nothing to find out."""
    assert kind in {doubt.kind for doubt in expand(raw, VARIABLES, home="/root").doubts}
