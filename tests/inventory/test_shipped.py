"""The inventory that comes with eagleops."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path

import pytest

from eagleops.engines import engine
from eagleops.inventory import load, parse

DATA = Path(__file__).parents[1] / "data" / "commands"
SHIPPED = Path(str(resources.files("eagleops") / "hosts.yaml"))
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)")


def typed(name: str) -> tuple[dict[str, str], list[str]]:
    """The variables and the argv of a command as it was typed, as the two shells read it."""
    inner = shlex.split((DATA / f"{name}.sh").read_text(encoding="utf-8"))[2]
    words = shlex.split(inner)
    env = {}
    while found := ASSIGNMENT.fullmatch(words[0]):
        env[found[1]] = found[2]
        words.pop(0)
    assert words.pop(0) == "nohup"
    argv = words[: words.index(">")]
    return env, [argv[0].replace("~", "/root"), *argv[1:]]


def test_the_repository_s_file_and_the_package_s_are_the_same() -> None:
    """What a person sees in a checkout is what an installed eagleops reads."""
    beside = Path(__file__).parents[2] / "hosts.yaml"

    assert beside.read_text(encoding="utf-8") == SHIPPED.read_text(encoding="utf-8")


def test_its_default_is_the_baseline_on_the_embedded_box() -> None:
    """A newcomer needs no machine."""
    inventory = load(SHIPPED)

    assert inventory.target().transport == "sim"
    assert inventory.profile().name == "baseline"
    assert inventory.profile_names() == ("baseline", "eagle3-2step", "eagle3-3step")
    assert [dict(inventory.profile(name).sim) for name in inventory.profile_names()] == [
        {"tok_s": 82.2},
        {"tok_s": 82.2, "cycle_ms": 30.6, "accept_length": 1.84},
        {"tok_s": 82.2, "cycle_ms": 31.5, "accept_length": 1.9},
    ]


@pytest.mark.parametrize("name", ["baseline", "eagle3-2step", "eagle3-3step"])
def test_each_profile_is_the_command_that_was_typed(name) -> None:
    """Word for word, and variable for variable: nothing of theirs is lost or changed."""
    profile = load(SHIPPED).profile(name)
    adapter = engine(profile.engine)
    env, argv = typed(name)

    assert list(adapter.command(profile, "/root/ml-env/bin/python3")) == argv
    assert dict(profile.env) == env
    assert adapter.environment(profile, nccl_log=False) == {**env, "SPT_NOENV": "1"}


def test_the_commented_machines_are_right_once_they_are_uncommented() -> None:
    """The example in the comments is one that works."""
    text = SHIPPED.read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        bare = re.sub(r"^( *)# ?", r"\1", line)
        pair = re.match(
            r"(  pve:|    (address|python|host_keys|identity_file|known_hosts"
            r"|ssh_config|via|connect_timeout_s|idle_mib|state_home): )",
            bare,
        )
        lines.append(bare if pair and line.startswith("  #") else line)
    text = "\n".join(lines)
    start = text.index("# containers:")
    end = text.index("#   Other kinds")
    block = re.sub(r"^# ?", "", text[start:end], flags=re.MULTILINE)
    inventory = parse(text[:start] + block + text[end:])

    assert inventory.hosts["pve"].address == "root@192.0.2.6"
    assert inventory.hosts["pve"].state_home == "/var/lib/eagleops"
    llm = inventory.containers["llm"]
    assert (llm.on, llm.identifier, llm.address) == ("pve", "129", "root@192.0.2.174")
