"""What a profile may hold when it is made in Python."""

from __future__ import annotations

import pytest

from eagleops.errors import ProfileError
from eagleops.profile import Profile, ProfileEntry


def message(**values) -> str:
    """The text of the error that a profile with these values is."""
    with pytest.raises(ProfileError) as caught:
        ProfileEntry(name="p", **values)
    return str(caught.value)


def test_numbers_become_the_text_that_argv_and_environ_hold() -> None:
    """A number given in Python is written as Python writes it."""
    profile = Profile(name="p", args={"tp-size": 8, "mem": 0.88}, env={"N": 16, "X": "010"})

    assert profile.args == {"tp-size": "8", "mem": "0.88"}
    assert profile.env == {"N": "16", "X": "010"}


def test_lists_mappings_and_bare_flags_keep_their_kind() -> None:
    """A list is several values, a mapping one value in JSON, True a bare flag."""
    profile = Profile(name="p", args={"a": [1, "x"], "b": {"k": 2}, "c": True})

    assert profile.args == {"a": ("1", "x"), "b": {"k": 2}, "c": True}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"args": {"trust-remote-code": False}},
            (
                "args.trust-remote-code: false is no flag's value\nnull leaves a flag out; a text "
                "'false' in quotes is handed on; some flags are turned off by another one, "
                "no-<flag>: true."
            ),
        ),
        (
            {"args": {"--tp-size": 8}},
            "args: '--tp-size' is no flag's name\nWrite it without its dashes: tp-size.",
        ),
        ({"args": {"a b": 1}}, "args: 'a b' is no flag's name"),
        ({"args": {"a": object}}, "args.a: expected a text or a number, got <class 'object'>"),
        (
            {"env": {"A": True}},
            (
                "env.A: expected a text or a number, got True\n"
                "A variable is a text: put the value in quotes, for example '1' or 'true'."
            ),
        ),
        (
            {"env": {"A=B": "1"}},
            "env: 'A=B' is no variable's name\nLetters, digits and underscores; no digit first.",
        ),
        (
            {"env": {"A": "x\0y"}},
            (
                "env.A: 'x\\x00y' cannot be handed to a process: it holds a NUL byte or half a "
                "surrogate pair"
            ),
        ),
        (
            {"env": {"A": "\ud800"}},
            (
                "env.A: '\\ud800' cannot be handed to a process: it holds a NUL byte or half a "
                "surrogate pair"
            ),
        ),
        ({"port": "8000"}, "port: expected a number from 1 to 65535, got '8000'"),
        ({"port": True}, "port: expected a number from 1 to 65535, got True"),
        ({"port": 0}, "port: expected a number from 1 to 65535, got 0"),
        ({"gpus": []}, "gpus: expected different GPU indices from 0 up, got []"),
        ({"gpus": [1, 1]}, "gpus: expected different GPU indices from 0 up, got [1, 1]"),
        ({"gpus": [-1]}, "gpus: expected different GPU indices from 0 up, got [-1]"),
    ],
)
def test_a_value_that_cannot_be_launched_is_refused(values, expected) -> None:
    """The error says which key, what was expected, and what was got."""
    assert message(**values) == expected


def test_a_secret_is_shown_by_neither_repr_nor_json() -> None:
    """Neither a notebook nor a report shows the value of a secret name."""
    profile = Profile(
        name="p",
        env={"HF_TOKEN": "hunter2", "NCCL_PROTO": "LL"},
        args={"api-key": "hunter2", "tp-size": 8},
        command=["serve", "--api-key", "hunter2"],
    )
    entry = ProfileEntry(
        name="p",
        env={"HF_TOKEN": "hunter2"},
        args={"api-key": "hunter2"},
        command=["serve", "--api-key=hunter2"],
    )

    assert "hunter2" not in repr(entry)
    assert "hunter2" not in repr(profile)
    assert "hunter2" not in str(profile.to_dict())
    assert profile.to_dict()["env"]["NCCL_PROTO"] == "LL"
    assert profile.to_dict()["args"] == {"api-key": "<redacted>", "tp-size": "8"}


@pytest.mark.parametrize("value", ["hush\0", "hush\ud800", ["hush"], {"a": "hush"}, b"hush"])
def test_a_secret_that_cannot_be_launched_is_refused_without_it(value) -> None:
    """Its key is told, and what is wrong."""
    told = message(env={"HF_TOKEN": value})

    assert told.startswith("env.HF_TOKEN: ")
    assert "hush" not in told
    assert "hush" not in message(args={"api-key": ["hush\0"]})


def test_a_profile_cannot_be_changed() -> None:
    """What was resolved stays as it was: a change makes a new profile."""
    profile = Profile(name="p", env={"A": "1"})

    with pytest.raises(TypeError):
        profile.env["A"] = "2"
    with pytest.raises(AttributeError):
        profile.name = "q"
