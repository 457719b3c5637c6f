"""No secret reaches the ledger: not its file, not its log, not an export."""

from __future__ import annotations

import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eagleops.ledger import Ledger
from eagleops.ledger.redaction import without_secrets
from eagleops.remote.redact import REDACTED

SECRET = "hf_Zq7secretsecretsecret"
PASSWORD = "p4ssw0rd-of-the-day"


def test_a_secret_leaves_no_trace(tmp_path: Path, make_run, on_disk) -> None:
    """Neither name nor place saves it: variables, flags, log lines, URLs, witnesses."""
    run = make_run(
        spec={
            "argv": ["vllm", "serve", "m", "--api-key", SECRET, f"--hf-token={SECRET}"],
            "env": {"HF_TOKEN": SECRET, "DB_PASSWORD": PASSWORD, "COPY_OF_IT": f"x{SECRET}y"},
        },
        profile_source={"env": {"HF_TOKEN": SECRET}, "args": {"api-key": SECRET}},
        environment={
            "expected": {"HF_TOKEN": SECRET},
            "processes": [{"variables": {"HF_TOKEN": {"live": SECRET, "verdict": "ok"}}}],
        },
        log={"tail": [f"token is {SECRET}", f"GET https://u:{PASSWORD}@example.com/"]},
    )
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        number = ledger.add(run)
        ledger.update(number, {"log": {"tail": [f"HF_TOKEN={SECRET}"]}}, secrets=[SECRET])
        exported = io.StringIO()
        ledger.export(exported)
        ledger.export(tmp_path / "ledger.db.jsonl")
        found = on_disk(tmp_path)
        part = ledger.run(number).part

        for secret in (SECRET, PASSWORD):
            assert secret not in exported.getvalue()
            assert secret.encode() not in found
        assert part("spec")["env"]["COPY_OF_IT"] == f"x{REDACTED}y"
        assert b"COPY_OF_IT" in found
        assert part("environment")["processes"][0]["variables"]["HF_TOKEN"] == {
            "live": REDACTED,
            "verdict": "ok",
        }
    assert SECRET.encode() not in on_disk(tmp_path)


def test_the_search_for_secrets_finds_what_is_there(tmp_path: Path, make_run, on_disk) -> None:
    """What is no secret is found by the same search, in the log before it is in the file."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.add(make_run(log={"tail": ["a harmless line"]}))

        assert b"a harmless line" in on_disk(tmp_path)


def test_figures_are_no_secrets(make_run) -> None:
    """Counts of tokens, token ids and key-value caches stay readable."""
    bench = {
        "completion_tokens": 256,
        "total_token_throughput": 82.2,
        "kv_cache_dtype": "fp8",
        "tokenizer": "slow",
    }

    assert without_secrets({"bench": bench}) == {"bench": bench}


def test_a_short_secret_garbles_nothing(make_run) -> None:
    """A password of three letters is left out under its name, not in every word that has it."""
    plain = without_secrets({"spec": {"env": {"DB_PASSWORD": "abc", "PATH": "/abc/bin"}}})

    assert plain == {"spec": {"env": {"DB_PASSWORD": REDACTED, "PATH": "/abc/bin"}}}


names = st.sampled_from(
    ["HF_TOKEN", "--api-key", "PATH", "argv", "env", "variables", "live", "tail", "n"]
)
texts = st.text(max_size=12) | st.sampled_from(
    ["--api-key", "HF_TOKEN=abcdefgh", "--api-key=12345678", "Bearer abcdefgh", "abcdefgh"]
)
bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**12) | st.floats(allow_nan=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(texts, max_size=6).map(list)
        | st.dictionaries(names | texts, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(bodies)
def test_leaving_secrets_out_twice_changes_nothing(body: object) -> None:
    """What an export holds is taken in as it is: leaving out is idempotent."""
    once = without_secrets({"part": body})

    assert without_secrets(once) == once


@given(bodies, st.sampled_from(["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"]))
def test_a_named_secret_is_nowhere(body: object, name: str) -> None:
    """Whatever stands around it, a secret's value is in no part of its run."""
    value = "correct-horse-battery"
    parts = {"spec": {"env": {name: value}}, "log": {"tail": [body, f"so {value}, then"]}}

    assert value not in repr(without_secrets(parts))
