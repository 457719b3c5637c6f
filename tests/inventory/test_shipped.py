"""The inventory that comes with eagleops."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path

import attrs
import pytest

from eagleops.engines import engine
from eagleops.inventory import SuiteEntry, load, parse

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


def test_its_suite_looks_at_the_embedded_box() -> None:
    """`nightly` works out of the box."""
    inventory = load(SHIPPED)
    suite = inventory.suite()

    assert suite.name == "default"
    assert [target.name for target in inventory.suite_targets(suite)] == ["sim"]
    assert [one.profile for one in suite.profiles] == ["baseline"]


def commented_keys() -> dict[str, str]:
    """What the comments of the suite say, by key, uncommented."""
    text = SHIPPED.read_text(encoding="utf-8").partition("nightly:\n")[2]
    lines = [re.sub(r"^    # ?", "", line) for line in text.splitlines()[3:]]
    parts = {}
    for line in lines:
        if found := re.match(r"([a-z_]+): *\S|([a-z]+):$", line):
            key = found[1] or found[2]
            parts[key] = line
        elif line.startswith("  ") and parts:
            parts[key] += f"\n{line}"
    return parts


def test_the_commented_keys_of_a_suite_are_all_that_there_are_and_right() -> None:
    """Each shows what holds where it does not stand, or an example that works."""
    parts = commented_keys()
    shown = "\n".join(f"    {line}" for part in parts.values() for line in part.splitlines())
    suite = parse(
        "hosts: {sim: {transport: sim}}\n"
        "profiles: {baseline: {engine: sglang, model: m}, eagle3-2step: {extends: baseline}}\n"
        f"nightly:\n  default:\n    hosts: [sim]\n{shown}\n"
    ).suite()
    silent = SuiteEntry(name="default", hosts=("sim",))

    examples = {"profiles", "reports", "prometheus", "checks", "commands", "notify"}
    keys = {field.name for field in attrs.fields(SuiteEntry)} - {"name", "origin", "hosts"}
    assert set(parts) == keys
    for key in keys - examples:
        assert getattr(suite, key) == getattr(silent, key), key
    for key in examples:
        assert getattr(suite, key) != getattr(silent, key), key
    assert suite.rule("speed:eagle3-2step").severity == "warn"
    assert not suite.rule("doctor:port").on
    assert suite.profiles[1].pin == "42"
    assert suite.commands["nccl"].lowest == 40
