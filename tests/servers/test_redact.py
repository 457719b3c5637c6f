"""What is a secret and what is not: by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote import redact
from eagleops.remote.redact import REDACTED

DATA = Path(__file__).with_name("data")

MARKERS = ["TOKEN", "KEY", "SECRET", "PASSWORD"]
SECRET_NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "HF_", "my_", "OPENAI_API_", "x"]),
    st.sampled_from([*MARKERS, *map(str.lower, MARKERS)]),
    st.sampled_from(["", "_2", "_PROD"]),
)
# Letters enough that it stands nowhere else by chance, and is no number and no "none".
SECRETS = st.text("abcdefghijkXYZ0189_+/=.~", min_size=3, max_size=40).map(lambda t: "Q7q" + t)


@given(SECRET_NAMES, st.text(min_size=1))
def test_a_secret_name_hides_any_value_in_an_environment(name, value) -> None:
    """Nothing of the value is left, whatever it is, but for words like ``none``."""
    shown = redact.environment({name: value})[name]

    plain = value.lower() in {"none", "null", "true", "false", "yes", "no", "on", "off"}
    assert shown == (value if plain else REDACTED)


@given(SECRET_NAMES, SECRETS)
def test_a_secret_is_hidden_in_every_shape_of_an_argument(name, secret) -> None:
    """As its own argument, after ``=``, as an assignment, in JSON and in a shell's line."""
    flag = "--" + name.replace("_", "-")
    argv = [
        "prog", flag, secret, f"{flag}={secret}", f"{name}={secret}", f'{{"{name}": "{secret}"}}',
        f"sh -c 'export {name}={secret}; prog'", "--end",
    ]  # fmt: skip

    shown = redact.argv(argv)

    assert secret not in " ".join(shown)
    assert (shown[0], shown[1], shown[2], shown[-1]) == ("prog", flag, REDACTED, "--end")


@given(
    SECRET_NAMES.filter(lambda name: name.lower() != "key"),
    SECRETS,
    st.sampled_from(
        ["{n}={s}", "{n}: {s}", "{n}='{s}'", '{n}="{s}"', '"{n}": "{s}"', "'{n}': '{s}'",
         r"\"{n}\": \"{s}\"", "--{n} {s}", "--{n}={s}", "f(a=1, {n}='{s}', b=2)", "{n}='{s}"]
    ),
    st.sampled_from(["", "INFO ", "a=b, ", "tokenizer=x ", "[12:00] "]),
)  # fmt: skip
def test_a_secret_is_hidden_in_a_line_of_a_log(name, secret, shape, before) -> None:
    """In each of the ways in which programs print their settings."""
    line = before + shape.format(n=name, s=secret)

    assert secret not in redact.text(line)


@given(st.text())
def test_any_text_can_be_redacted_and_once_is_enough(text) -> None:
    """Redacting is total and settles at once."""
    once = redact.text(text)

    assert redact.text(once) == once


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=5))
def test_json_keeps_its_shape(document) -> None:
    """Keys stay, values of secret names go."""
    assert list(redact.json_value({"a": [document]})["a"][0]) == list(document)


def test_json_is_redacted_at_any_depth() -> None:
    """Lists, objects and numbers under a secret name."""
    document = {"a": [{"api_key": "x1", "b": {"password": 12345}}], "secrets": ["x2"], "port": 80}

    assert redact.json_value(document) == {
        "a": [{"api_key": REDACTED, "b": {"password": REDACTED}}],
        "secrets": [REDACTED],
        "port": 80,
    }


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("HF_TOKEN", "hf_abc", True),
        ("HF_TOKEN", "123456", True),
        ("hf-token", "x", True),
        ("--api-key", "x", True),
        ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("ssl_keyfile_password", "x", True),
        ("SSH_PRIVATE_KEY", "x", True),
        ("MASTER_KEY", "0", True),
        ("API_TOKENS", "abc", True),
        ("api_key", "None", False),
        ("max_total_num_tokens", "3341886", False),
        ("speculative-num-draft-tokens", "3", False),
        ("kt_max_deferred_experts_per_token", "8", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("tokenizer_path", "/tmp/target", False),
        ("speculative_token_map", "/data/map.pt", False),
        ("ssl_keyfile", "/etc/key.pem", False),
        ("NCCL_PROTO", "LL", False),
        ("KeyError", "'foo'", False),
    ],
)
def test_the_names_of_the_trade(name, value, secret) -> None:
    """Engines have dozens of names with ``token`` in them, and keep few secrets."""
    assert redact.is_secret(name, value) is secret


def test_a_real_engines_settings_lose_their_key_and_nothing_else() -> None:
    """SGLang 0.5.17's own line: 300 settings, one of them set to a secret for this test."""
    line = (DATA / "sglang-server-args.txt").read_text().strip()
    assert "api_key=None" in line

    told = line.replace(" api_key=None", " api_key='sesame-1'")

    assert redact.text(line) == line
    assert redact.text(told) == line.replace(" api_key=None", f" api_key='{REDACTED}'")


def test_a_real_engines_log_is_left_as_it_is() -> None:
    """Its lines count tokens all the time."""
    for line in (DATA / "sglang-log.txt").read_text().splitlines():
        assert redact.text(line) == line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Authorization: Bearer abcdefgh", f"Authorization: Bearer {REDACTED}"),
        ("HTTP_PROXY=http://u:pw@proxy:1/", f"HTTP_PROXY=http://u:{REDACTED}@proxy:1/"),
        ("KeyError: 'layers.0'", "KeyError: 'layers.0'"),
        ("missing key: lm_head.weight", "missing key: lm_head.weight"),
        ("#new-token: 512, #cached-token: 0", "#new-token: 512, #cached-token: 0"),
        ("token: hf_abc", f"token: {REDACTED}"),
        ("a=b,HF_TOKEN=x y", f"a=b,HF_TOKEN={REDACTED} y"),
        ("GET /x?token=abc HTTP/1.1", f"GET /x?token={REDACTED} HTTP/1.1"),
    ],
)
def test_lines_of_logs(line, shown) -> None:
    """What is left out, and what only looks as if it should be."""
    assert redact.text(line) == shown
