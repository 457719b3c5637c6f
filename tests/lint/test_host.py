"""``lint --host``: the installed engine's own flags, and what else only the machine can tell."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from eagleops.knowledge.flags import from_help
from eagleops.library import load
from eagleops.lint import lint
from eagleops.workflows import engine_facts

HELP = """usage: launch_server.py [-h] --model-path MODEL_PATH [--tp-size TP_SIZE]

options:
  -h, --help            show this help message and exit
  --model-path MODEL_PATH, --model MODEL_PATH
                        --this-is-text of the help
  --tensor-parallel-size TP_SIZE, --tp-size TP_SIZE
  --trust-remote-code   Whether to allow
  --cuda-graph-bs CUDA_GRAPH_BS [CUDA_GRAPH_BS ...]
  --load-format {auto,pt,safetensors}
  --enable-x, --no-enable-x
  --maybe [MAYBE]
"""


@pytest.fixture
def library(tmp_path: Path):
    """The embedded box, with profiles of both engines."""
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "defaults: {host: sim, profile: s}\n"
        f"ledger: {tmp_path}/ledger.sqlite\n"
        f"hosts: {{sim: {{transport: sim, sim: {{directory: {tmp_path}/sim, gpus: 4}}}}}}\n"
        "profiles:\n"
        "  s: {engine: sglang, model: /m, port: 8000, args: {tp-size: 8, not-there: 1}}\n"
        "  v: {engine: vllm, model: /m, port: 8000, args: {swap-space: 4}}\n"
        "  sound: {engine: sglang, model: /m, port: 8000, args: {tp-size: 4}}\n",
        encoding="utf-8",
    )
    with load(file) as opened:
        yield opened


def test_a_help_text_becomes_a_table_of_flags() -> None:
    """Every spelling, what it takes, and its choices; the text beside them is no flag."""
    flags = from_help("sglang", "0.5.9", HELP).flags
    told = {name: (flag.of, flag.takes) for name, flag in flags.items()}

    assert told == {
        "-h": ("--help", "none"),
        "--help": ("--help", "none"),
        "--model-path": ("--model-path", "one"),
        "--model": ("--model-path", "one"),
        "--tensor-parallel-size": ("--tensor-parallel-size", "one"),
        "--tp-size": ("--tensor-parallel-size", "one"),
        "--trust-remote-code": ("--trust-remote-code", "none"),
        "--cuda-graph-bs": ("--cuda-graph-bs", "many"),
        "--load-format": ("--load-format", "one"),
        "--enable-x": ("--enable-x", "pair"),
        "--no-enable-x": ("--enable-x", "pair"),
        "--maybe": ("--maybe", "optional"),
    }
    assert flags["--load-format"].choices == ("auto", "pt", "safetensors")


def test_the_installed_engine_is_asked_for_its_flags(library) -> None:
    """What it does not know is an error, whichever engine it is; so are GPUs that are not there."""
    profiles = [library.profile(name) for name in ("s", "v", "sound")]
    facts = engine_facts.ask(library.host().machine, profiles, ledger=library.inventory.ledger)
    errors = {
        profile.name: {one.rule for one in lint(profile, facts[profile.name])
                       if one.severity == "error"}
        for profile in profiles
    }  # fmt: skip

    assert errors == {"s": {"flag-unknown", "gpus"}, "v": {"flag-removed"}, "sound": set()}
    assert facts["s"].gpu_count == 4
    assert facts["s"].nvlink is False


def test_the_flags_of_a_version_are_asked_for_once(tmp_path: Path, monkeypatch) -> None:
    """They are kept beside the ledger, by engine and version."""
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "hosts: {here: {transport: local, python: " + sys.executable + "}}\n"
        "profiles: {s: {engine: sglang, model: /m, port: 8000}}\n",
        encoding="utf-8",
    )
    asked = []
    monkeypatch.setattr(engine_facts._Asker, "versions", lambda *_: {"sglang": "0.5.9"})

    def run(_self, argv, limit_s=0.0):
        asked.append(list(argv))
        return HELP if "--help" in argv else None

    monkeypatch.setattr(engine_facts._Asker, "run", run)
    with load(file) as library:
        for _ in range(2):
            facts = engine_facts.ask(
                library.host("here").machine,
                [library.profile("s")],
                ledger=tmp_path / "ledger.sqlite",
            )
            assert facts["s"].engine_version == "0.5.9"
            assert facts["s"].flags.find("--tp-size") is not None

    assert len([argv for argv in asked if "--help" in argv]) == 1
    kept = list((tmp_path / "engine-flags").iterdir())
    assert [json.loads(one.read_text())["version"] for one in kept] == ["0.5.9"]


def test_a_conf_file_that_the_profile_names_is_read_before_the_machine_s(tmp_path: Path) -> None:
    """NCCL_CONF_FILE is read where it is, and told where it sets what the profile does not."""
    conf = tmp_path / "nccl.conf"
    conf.write_text("# mine\nNCCL_ALGO=Tree\n")
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "hosts: {here: {transport: local, python: " + sys.executable + "}}\n"
        "profiles: {c: {engine: command, command: [/bin/true], "
        f"env: {{NCCL_CONF_FILE: {conf}}}}}}}\n",
        encoding="utf-8",
    )
    with load(file) as library:
        profile = library.profile("c")
        facts = engine_facts.ask(library.host("here").machine, [profile])

    found = [one for one in lint(profile, facts["c"]) if one.rule == "nccl-conf"]
    assert [one.where for one in found] == [f"here: {conf}"]
    assert found[0].message == f"{conf} sets NCCL_ALGO=Tree, which the profile does not set"


def test_nvlink_is_read_from_the_topology() -> None:
    """NV4 and the like in a row of the matrix; nothing is known without a matrix."""
    assert engine_facts._has_nvlink("GPU0\t X \tNV4\nGPU1\tNV4\t X \n") is True
    assert engine_facts._has_nvlink("GPU0\t X \tSYS\n") is False
    assert engine_facts._has_nvlink("no devices") is None
