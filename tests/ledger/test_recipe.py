"""A run written out as a profile launches as it did."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops import inventory
from eagleops.engines import engine
from eagleops.errors import UsageError
from eagleops.ledger import Header, Run
from eagleops.ledger.recipe import as_profile
from eagleops.profile import Profile

PYTHON = "/root/ml-env/bin/python3"


def recorded(profile: Profile, **parts: Any) -> Run:
    """A profile's run, as a launch records it."""
    adapter = engine(profile.engine)
    argv = list(adapter.command(profile, profile.python or PYTHON))
    spec = {"argv": argv, "env": adapter.environment(profile), "cwd": "/root"}
    header = Header(host="llm", server="s", profile=profile.name, engine=profile.engine, id=42)
    run = Run.begin(header, {"profile_source": profile.to_dict(), "spec": spec, **parts})
    return attrs.evolve(run, header=attrs.evolve(run.header, id=42))


def read_back(text: str) -> Profile:
    """The one profile of a recipe, read as any hosts.yaml is."""
    read = inventory.parse("hosts: {box: {transport: local}}\n" + text)
    (name,) = read.profile_names()
    return read.profile(name)


BASELINE = Profile(
    name="baseline",
    engine="sglang",
    model="/shared/kimi-k2.5-int4",
    port=8000,
    args={
        "trust-remote-code": True,
        "tp-size": "8",
        "mem-fraction-static": "0.88",
        "cuda-graph-bs": ["1", "2"],
        "json-model-override-args": {"rope": {"factor": 8.0, "on": True}},
    },
    env={"NCCL_PROTO": "LL", "ODD": "a: b # c", "EMPTY": "", "OCTAL": "010", "YES": "yes"},
    unset=frozenset({"SPT_NOENV"}),
    inherit=("HTTP_PROXY",),
    gpus=(0, 1),
    sim={"tok_s": 82.2, "fail": "exit"},
    cwd="/data",
)


def test_a_recipe_launches_what_was_launched() -> None:
    """Read back, it gives the very argv and environment; the interpreter is pinned."""
    again = read_back(as_profile(recorded(BASELINE)))

    adapter = engine("sglang")
    assert again.name == "baseline-run-42"
    assert again.python == PYTHON
    assert adapter.command(again, again.python) == adapter.command(BASELINE, PYTHON)
    assert adapter.environment(again) == adapter.environment(BASELINE)
    assert (again.inherit, again.cwd, again.gpus) == (("HTTP_PROXY",), "/data", (0, 1))
    assert dict(again.sim) == dict(BASELINE.sim)


def test_versions_and_hashes_stand_beside_it() -> None:
    """What no profile can bring back is there to be read, the likeliest cause first."""
    text = as_profile(
        recorded(
            BASELINE,
            packages={
                "python": {"version": "3.12.3", "executable": PYTHON},
                "distributions": [
                    {"name": "aiohttp", "version": "3.9"},
                    {"name": "torch", "version": "2.9.0+cu129"},
                ],
                "compared": [
                    {
                        "name": "sglang",
                        "checked": True,
                        "problem": None,
                        "modified": [
                            {"path": "s/engine.py", "state": "changed", "sha256": "ab" * 32}
                            | {"bytes": 3}
                        ],
                    }
                ],
            },
            bench={"tok_s": {"median": 88.8}},
        ),
        "what-worked",
    )

    head, _, body = text.partition("profiles:\n")
    assert head.splitlines()[0].startswith("# Run 42 (")
    assert head.splitlines()[0].endswith(", started, 88.8 tok/s.")
    assert head.splitlines()[1:] == [
        "# What it ran with, and what this profile cannot bring back:",
        "#   patches: sglang: s/engine.py: changed (sha256 abababababab, 3 bytes)",
        "#   versions: torch: 2.9.0+cu129",
        "#   versions: Python: 3.12.3",
        "#   versions: Python's place: /root/ml-env/bin/python3",
        "#   versions: aiohttp: 3.9",
    ]
    assert body.splitlines()[:6] == [
        "  what-worked:",
        "    engine: sglang",
        "    model: /shared/kimi-k2.5-int4",
        "    port: 8000",
        f"    python: {PYTHON}",
        "    cwd: /data",
    ]


def test_a_secret_is_asked_for_and_not_written() -> None:
    """It is inherited from the target, where it has to be set; a flag's is left to be given."""
    profile = BASELINE.with_(env={"HF_TOKEN": "hf_abcdefgh"}, args={"api-key": "topsecret9"})
    run = recorded(profile)
    spec = {**run.part("spec"), "env": {"HF_TOKEN": "<redacted>"}}
    spec["argv"] = [*spec["argv"][:-1], "--api-key", "<redacted>"]
    run = recorded(profile, spec=spec)

    text = as_profile(run)

    again = read_back(text)
    assert "hf_abcdefgh" not in text
    assert "topsecret9" not in text
    assert again.inherit == ("HF_TOKEN", "HTTP_PROXY")
    assert "api-key" not in again.args
    assert "# Secret, to be set on the target: --api-key" in text
    assert "# Secret, to be set on the target: HF_TOKEN" in text


def test_a_command_without_a_profile_is_a_recipe_too() -> None:
    """Of a run whose profile is not on record the very argv is, as engine ``command``."""
    header = Header(host="h", server="s", profile="p", engine="vllm", id=7)
    spec = {
        "argv": ["/env/bin/vllm", "serve", "/m", "--port", "8000"],
        "env": {"NCCL_PROTO": "LL", "PATH": "/usr/bin", "EAGLEOPS_SERVER": "s"},
        "cwd": "/data",
    }

    again = read_back(as_profile(Run.begin(header, {"spec": spec}), "p"))

    assert again.engine == "command"
    assert again.command == tuple(spec["argv"])
    assert (dict(again.env), again.cwd) == ({"NCCL_PROTO": "LL"}, "/data")


def test_a_run_without_a_command_has_no_recipe() -> None:
    """There is nothing to write, and that is told."""
    header = Header(host="h", server="s", profile="p", engine="vllm", id=7)

    with pytest.raises(UsageError) as raised:
        as_profile(attrs.evolve(Run.begin(header, {}), header=header))

    assert str(raised.value) == (
        "run 7 has neither its profile nor its command on record\nChoose another: eagleops runs."
    )


def test_no_fact_gets_out_of_its_comment() -> None:
    """A line break in a version or a file's name does not become YAML."""
    packages = {
        "python": {"version": "3\nprofiles: {evil: {}}\r\u2028x", "executable": None},
        "distributions": [],
        "compared": [],
    }
    text = as_profile(recorded(BASELINE, packages=packages))

    assert read_back(text).name == "baseline-run-42"


names = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True)
flags = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(
    lambda name: name not in {"port", "model", "model-path", "host", "served-model-name"}
)
# What exec can hand on: no NUL, no lone surrogate that has no byte.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
numbers = st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{1,3})?|0x1f|1e3|1_0|~|null|010", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | texts,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(texts.filter(bool), inner, max_size=2)
    ),
    max_leaves=4,
)
values = (
    texts
    | numbers
    | st.just(value=True)
    | st.lists(texts | numbers, max_size=3)
    | st.dictionaries(texts.filter(bool), json_values, max_size=2)
)


@given(
    st.dictionaries(flags, values, max_size=4), st.dictionaries(names, texts | numbers, max_size=4)
)
def test_every_recipe_is_read_back_as_it_was(args: dict[str, Any], env: dict[str, str]) -> None:
    """Whatever stands in a profile, the recipe's argv and environment are the recorded ones."""
    profile = attrs.evolve(BASELINE, args=args, env=env)
    recipe = as_profile(recorded(profile))
    if "redacted" in recipe:
        return  # a name that hypothesis made happens to be a secret's

    again = read_back(recipe)

    adapter = engine("sglang")
    assert adapter.command(again, again.python) == adapter.command(profile, PYTHON)
    assert adapter.environment(again) == adapter.environment(profile)
