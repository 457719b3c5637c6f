"""From a profile to argv."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.engines import engine
from eagleops.engines.flags import rendered
from eagleops.errors import ProfileError
from eagleops.profile import Profile

SGLANG = ("py", "-m", "sglang.launch_server", "--model-path", "/models/m")
VLLM = ("py", "-m", "vllm.entrypoints.cli.main", "serve", "/models/m")


def refusal(profile: Profile) -> str:
    """The text of the error that a profile's command is."""
    with pytest.raises(ProfileError) as caught:
        engine(profile.engine).command(profile, "py")
    return str(caught.value)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, ("--port", "8000")),
        ({"tp-size": 8}, ("--tp-size", "8", "--port", "8000")),
        ({"trust-remote-code": True}, ("--trust-remote-code", "--port", "8000")),
        (
            {"cuda-graph-bs": [1, 2, 4]},
            ("--cuda-graph-bs", "1", "2", "4", "--port", "8000"),
        ),
        ({"stop": ""}, ("--stop", "", "--port", "8000")),
        ({"bias": -1}, ("--bias", "-1", "--port", "8000")),
        ({"bias": "-0.5"}, ("--bias", "-0.5", "--port", "8000")),
        ({"text": "--x"}, ("--text=--x", "--port", "8000")),
        ({"host": "::", "x": True}, ("--host", "::", "--port", "8000", "--x")),
        ({"port": 8000, "x": True}, ("--port", "8000", "--x")),
        ({"x": True, "port": 8000, "host": "::"}, ("--x", "--port", "8000", "--host", "::")),
        (
            {"json-model-override-args": {"a": {"b": [1, None]}, "é": "x y"}},
            (
                "--json-model-override-args",
                '{"a":{"b":[1,null]},"é":"x y"}',
                "--port",
                "8000",
            ),
        ),
    ],
)
def test_sglang_gets_each_flag_in_order_and_the_port(profile, args, expected) -> None:
    """The port stands beside the address, where one is given, and last where none is."""
    command = engine("sglang").command(profile("sglang", args=args), "py")

    assert command == (*SGLANG, *expected)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, ("--port", "8000")),
        ({"-tp": 2}, ("-tp", "2", "--port", "8000")),
        ({"model": "/models/m"}, ("--port", "8000")),
        (
            {"speculative-config": {"method": "eagle3", "num_speculative_tokens": 2}},
            (
                "--speculative-config",
                '{"method":"eagle3","num_speculative_tokens":2}',
                "--port",
                "8000",
            ),
        ),
        ({"served-model-name": ["a", "b"]}, ("--served-model-name", "a", "b", "--port", "8000")),
        (
            {"middleware": ["a.b", "c.d"]},
            ("--middleware", "a.b", "--middleware", "c.d", "--port", "8000"),
        ),
        (
            {"lora-modules": [{"name": "x", "path": "/x"}, "y=/y"]},
            ("--lora-modules", '{"name":"x","path":"/x"}', "y=/y", "--port", "8000"),
        ),
    ],
)
def test_vllm_gets_the_model_first_then_its_flags(profile, args, expected) -> None:
    """As `vllm serve MODEL` does, run by the profile's own interpreter."""
    command = engine("vllm").command(profile("vllm", args=args), "py")

    assert command == (*VLLM, *expected)


def test_a_model_that_args_name_too_stands_where_they_name_it(profile) -> None:
    """Said twice and alike, it is given once."""
    command = engine("sglang").command(
        profile("sglang", args={"x": True, "model": "/models/m"}), "py"
    )

    assert command[2:] == ("sglang.launch_server", "--x", "--model", "/models/m", "--port", "8000")


def test_a_command_is_what_the_profile_writes(profile) -> None:
    """The interpreter has no part in it."""
    command = engine("command").command(profile("command", command=["a", "b c", ""]), "py")

    assert command == ("a", "b c", "")


REFUSALS = {
    "another port": (
        {"engine": "sglang", "args": {"port": 9000}},
        (
            "hosts.yaml:7: profiles.p.args.port: contradicts port: 9000 is not 8000\n"
            "Say it once, as `port:`, and take args.port out."
        ),
    ),
    "another model": (
        {"engine": "sglang", "args": {"model-path": "/x"}},
        (
            "hosts.yaml:7: profiles.p.args.model-path: contradicts model: /x is not /models/m\n"
            "Say it once, as `model:`, and take args.model-path out."
        ),
    ),
    "another model for vLLM": (
        {"engine": "vllm", "args": {"model": "/x"}},
        (
            "hosts.yaml:7: profiles.p.args.model: contradicts model: /x is not /models/m\n"
            "Say it once, as `model:`, and take args.model out."
        ),
    ),
    "one flag by two names": (
        {"engine": "sglang", "args": {"model": "/models/m", "model-path": "/x"}},
        (
            "hosts.yaml:7: profiles.p.args.model-path: contradicts args.model: both are "
            "names of one "
            "flag, with /models/m and /x\nKeep one of them; null removes an inherited one."
        ),
    ),
    "no model": (
        {"engine": "sglang", "model": None},
        (
            "hosts.yaml:7: profiles.p: engine sglang needs a model, and the profile has none\n"
            "Write `model: /path/to/model` in it."
        ),
    ),
    "a model among the args alone": (
        {"engine": "vllm", "model": None, "args": {"model": "/x"}},
        (
            "hosts.yaml:7: profiles.p: engine vllm needs a model, and the profile has none\n"
            "Write `model: /x` in it, not among its args."
        ),
    ),
    "no port": (
        {"engine": "vllm", "port": None},
        (
            "hosts.yaml:7: profiles.p: engine vllm needs a port, and the profile has none\n"
            "Write `port: 8000` in it."
        ),
    ),
    "a port among the args alone": (
        {"engine": "sglang", "port": None, "args": {"port": 9}},
        (
            "hosts.yaml:7: profiles.p: engine sglang needs a port, and the profile has none\n"
            "Write `port: 9` in it, not among its args."
        ),
    ),
    "no command": (
        {"engine": "command"},
        (
            "hosts.yaml:7: profiles.p: engine command needs a command, and the profile has none\n"
            "Write it as a list: `command: [/usr/bin/python3, -m, http.server, '8000']`."
        ),
    ),
    "a command with args": (
        {"engine": "command", "command": ["x"], "args": {"y": True}},
        (
            "hosts.yaml:7: profiles.p.args.y: engine command takes no args: what it starts is the "
            "command as it is written\nWrite them as part of `command:`."
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_profile_that_is_no_command_is_refused(profile, case) -> None:
    """With the place, and what to write instead."""
    values, expected = REFUSALS[case]

    assert refusal(profile(**values)) == expected


def test_the_profile_that_an_inherited_flag_comes_from_is_named(profile) -> None:
    """What contradicts may stand in another profile."""
    made = profile("sglang", args={"port": 9000}, sources={"args.port": "base"})

    assert refusal(made).splitlines()[0] == (
        "hosts.yaml:7: profiles.p.args.port: contradicts port: 9000 is not 8000 "
        "(it comes from profile base)"
    )


def test_an_unknown_engine_is_told(profile) -> None:
    """With the one that was meant, or all there are."""
    with pytest.raises(ProfileError) as near:
        engine("slang")
    with pytest.raises(ProfileError) as far:
        engine("tensorrt")
    with pytest.raises(ProfileError) as none:
        engine("")

    assert str(near.value) == "there is no engine 'slang'\nDid you mean sglang?"
    assert str(far.value) == "there is no engine 'tensorrt'\nIt is one of sglang, vllm, command."
    assert str(none.value) == "no engine is named\nIt is one of sglang, vllm, command."


names = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
# Before Python 3.13 argparse takes that for the end of the flags, even behind `=`.
values = texts.filter(lambda text: text != "--") | st.integers().map(str)


@given(st.dictionaries(names, values, min_size=1, max_size=5))
def test_argparse_reads_back_every_value(args) -> None:
    """Whatever a value holds, the engine's own kind of parser sees it unchanged."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in args:
        parser.add_argument(f"--{name}", dest=name)
    argv = [word for words in rendered(args) for word in words]

    assert vars(parser.parse_args(argv)) == args
