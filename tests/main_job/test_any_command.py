"""Whatever a server's command and environment are, it is launched, proved and stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleops.engines import ENGINES
from eagleops.workflows.verify import verify

ARGV = ["a 'b' \"c\" $(id) `id` \n\t*", "", "--", "--=x", "---", "--ü", "-", "é", "--a\nb=c"]
ENV = {
    "LINES": "a\nb\tc\r\n",
    "QUOTES": "'\"$(id)`",
    "EMPTY": "",
    "WIDE": "ü€😀",
    "BIG": "z" * 65536,
    "HF_TOKEN": "hf_never_shown",
}
# A line of a log is cut at some length, and no secret belongs in one.
SHOWN = {name: value for name, value in ENV.items() if name not in {"BIG", "HF_TOKEN"}}
PROGRAM = (
    f"import json,os,sys,time; env = {{name: os.environ[name] for name in {[*SHOWN]}}};"
    "print(json.dumps([sys.argv[1:], env]), flush=True); time.sleep(300)"
)


def test_hostile_words_and_values_arrive_and_are_proved(commands: Callable[..., Any]) -> None:
    """Each byte of argv and env is there, each variable ok, and no word of it upsets a command."""
    command = ["python3", "-c", PROGRAM, *ARGV]
    commands.write(
        more=[
            "  any:",
            "    engine: command",
            f"    command: {json.dumps(command, ensure_ascii=False)}",
            f"    env: {json.dumps(ENV, ensure_ascii=False)}",
        ]
    )

    launched = commands("launch", "--profile", "any", "--no-lint", "--json").document
    assert launched["ok"], launched
    log = commands("logs", "--json").document["lines"]
    verified = commands("verify-env", "--json").document
    stopped = commands("stop", "--json").document

    assert json.loads(log[0]) == [ARGV, SHOWN]
    assert verified["counts"] == {"ok": len(ENV), "wrong": 0, "missing": 0, "unknown": 0}
    assert stopped["server"]["state"] == "exited"
    assert "hf_never_shown" not in json.dumps([launched, log, verified, stopped])


TEXT = st.text(st.characters(exclude_characters="\0"), max_size=8)
SURROGATES = st.text(st.characters(categories=["Cs"]), max_size=2)
WORDS = TEXT | SURROGATES | st.builds("--{}".format, TEXT) | st.builds("--{}={}".format, TEXT, TEXT)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@given(argv=st.lists(WORDS, max_size=6), env=st.dictionaries(TEXT, TEXT | SURROGATES, max_size=3))
@settings(max_examples=100)
def test_any_process_can_be_judged(engine: str, argv: list[str], env: dict[str, str]) -> None:
    """What a process was started with may be no profile's: it is still judged."""
    process = {
        "pid": 7,
        "ppid": 1,
        "start_ticks": 1,
        "own_pid": 7,
        "uid": 0,
        "title": " ".join(argv),
        "argv": argv,
        "initial": {"state": "whole", "size": 1, "overwritten_bytes": 0, "variables": env}
        | {"nameless": 0, "why": "", "way_out": ""},
        "live": {"state": "read", "variables": env, "nameless": 0, "holder": "python3"},
        "nccl": {"facts": None, "why": "no log", "path": None, "loaded": None},
        "conf_files": [],
    }
    read = {"server": None, "spec": None, "salt": "", "processes": [process], "gone": []}
    machine = SimpleNamespace(name="box", call=lambda *_args, **_more: read)

    report = verify(machine, pid=7, expected={"NCCL_PROTO": "LL"}, engine=engine)

    assert set(report.expected) == {"NCCL_PROTO"}
