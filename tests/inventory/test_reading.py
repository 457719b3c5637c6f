"""What is read from hosts.yaml."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eagleops.inventory import ContainerEntry, HostEntry, SimSettings, parse
from eagleops.transport.ssh_options import SshOptions

WHOLE = """
defaults: {host: llm, profile: baseline}
hosts:
  sim: {transport: sim, sim: {gpus: 2, directory: box}}
  here: {transport: local, idle_mib: 500}
  jump: {address: me@jump.example.com}
  pve:
    address: root@192.0.2.6:2222
    python: /usr/bin/python3.11
    host_keys: accept-new
    identity_file: ~/.ssh/id_lab
    known_hosts: [known, /etc/ssh/known]
    ssh_config: conf
    via: jump
    connect_timeout_s: 2.5
    state_home: /var/lib/eagleops
containers:
  llm: {on: pve, vmid: 129, address: root@192.0.2.174, python: /root/ml-env/bin/python3}
  web: {on: here, kind: docker, name: sglang, program: /opt/docker}
  old: {on: here, kind: lxc}
groups: {boxes: [sim, llm]}
profiles:
  base: {abstract: true, env: {A: 1}}
  baseline: {extends: base, engine: vllm, model: m, port: 8000, gpus: [0, 1], cwd: /srv}
"""


def test_every_section_becomes_frozen_objects() -> None:
    """Each value of a full inventory arrives, typed."""
    inventory = parse(WHOLE, "etc/hosts.yaml", folder=Path("/etc/lab"))

    assert (inventory.defaults.host, inventory.defaults.profile) == ("llm", "baseline")
    assert inventory.hosts["sim"] == HostEntry(
        name="sim",
        origin="etc/hosts.yaml:4",
        transport="sim",
        python=sys.executable,
        sim=SimSettings(gpus=2, directory=Path("/etc/lab/box")),
    )
    assert inventory.hosts["here"].idle_mib == 500
    pve = inventory.hosts["pve"]
    assert (pve.address, pve.python) == ("root@192.0.2.6:2222", "/usr/bin/python3.11")
    assert (pve.state_home, pve.origin) == ("/var/lib/eagleops", "etc/hosts.yaml:7")
    assert pve.ssh == SshOptions(
        host_keys="accept-new",
        known_hosts=(Path("/etc/lab/known"), Path("/etc/ssh/known")),
        identity_files=(Path("~/.ssh/id_lab").expanduser(),),
        config_file=Path("/etc/lab/conf"),
        jump="me@jump.example.com",
        connect_timeout_s=2.5,
    )
    assert inventory.containers["llm"] == ContainerEntry(
        name="llm",
        origin="etc/hosts.yaml:18",
        on="pve",
        vmid=129,
        address="root@192.0.2.174",
        python="/root/ml-env/bin/python3",
    )
    assert inventory.groups == {"boxes": ("sim", "llm")}
    assert inventory.profile_names() == ("baseline",)
    assert inventory.profile("baseline").gpus == (0, 1)


def test_a_container_is_called_by_its_number_or_its_name() -> None:
    """Pct knows numbers; the others know names, the entry's own where none is given."""
    containers = parse(WHOLE).containers

    assert {name: c.identifier for name, c in containers.items()} == {
        "llm": "129",
        "web": "sglang",
        "old": "old",
    }


def test_hosts_on_the_way_are_named_by_their_addresses(read) -> None:
    """A jump host that needs one itself comes after it, as ProxyJump wants it."""
    inventory = read("""
        hosts:
          a: {address: a@example.com, via: gate.example.com}
          b: {address: b@example.com, via: a}
          c: {address: c@example.com, via: b}
    """)

    assert inventory.hosts["c"].via == "gate.example.com,a@example.com,b@example.com"


def test_null_and_absent_are_the_same_for_a_host(read) -> None:
    """A line may be emptied by null."""
    inventory = read("hosts: {box: {transport: local, python: null, state_home: ~}}")

    assert inventory.hosts["box"].python == "python3"


def test_sections_may_be_empty_or_absent(read) -> None:
    """A section whose lines are all comments is no section."""
    inventory = read("""
        defaults:
        hosts: {box: {transport: local}}
        containers:
        groups: null
        profiles:
          p:
            engine: sglang
            env:
            args:
    """)

    assert (inventory.containers, inventory.groups) == ({}, {})
    assert inventory.profile("p").env == {}


@pytest.mark.parametrize(
    "written",
    ["0x100000", "010", "1e6", "1_000", "12:30:45", "0.88", ".5", "+5", "-1", "2024-01-01", "1.10"],
)
def test_numbers_reach_the_server_as_they_were_written(read, written) -> None:
    """YAML takes some of them for other numbers, and Python prints others differently."""
    profile = read(f"""
        profiles:
          p: {{engine: sglang, env: {{X: {written}}}, args: {{x: {written}, y: [{written}]}}}}
    """).profile("p")

    assert profile.env["X"] == written
    assert (profile.args["x"], profile.args["y"]) == (written, (written,))


def test_flags_have_five_kinds_of_value(read) -> None:
    """Bare, one value, several, JSON, and none."""
    profile = read("""
        profiles:
          base: {abstract: true, args: {gone: 1, kept: 1}}
          p:
            extends: base
            engine: vllm
            args:
              bare: true
              also-bare: yes
              one: "true"
              empty: ''
              several: [1, two, {k: 1}]
              json: {n: 2, f: 1e6, big: 12345678901234567890, b: false, z: null, t: '2', l: [a]}
              gone: null
              -tp: 2
    """).profile("p")

    assert dict(profile.args) == {
        "kept": "1",
        "bare": True,
        "also-bare": True,
        "one": "true",
        "empty": "",
        "several": ("1", "two", {"k": 1}),
        "json": {
            "n": 2,
            "f": 1e6,
            "big": 12345678901234567890,
            "b": False,
            "z": None,
            "t": "2",
            "l": ["a"],
        },
        "-tp": "2",
    }


def test_null_removes_what_a_profile_inherits(read) -> None:
    """A variable, a field, or all variables at once."""
    inventory = read("""
        profiles:
          base: {engine: sglang, model: m, port: 1, env: {A: 1, B: 2}, inherit: [C]}
          a: {extends: base, env: {A: null, SPT_NOENV: ~}, port: null}
          b: {extends: [base], env: null, inherit: null}
    """)

    a, b = inventory.profile("a"), inventory.profile("b")
    assert (a.env, a.port, a.unset) == ({"B": "2"}, None, {"A", "SPT_NOENV"})
    assert (b.env, b.inherit, b.model) == ({}, (), "m")


def test_aliases_and_merge_keys_are_yaml_s_own(read) -> None:
    """What stands in the mapping itself wins over what is merged into it."""
    inventory = read("""
        profiles:
          a: {engine: sglang, env: &nccl {NCCL_ALGO: Ring, NCCL_PROTO: LL}}
          b: {engine: sglang, env: {<<: *nccl, NCCL_PROTO: Simple}}
          c: {engine: sglang, env: {<<: [{X: 1}, {X: 2, Y: 2}]}}
    """)

    assert inventory.profile("b").env == {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}
    assert inventory.profile("c").env == {"X": "1", "Y": "2"}


def test_on_is_a_key_and_no_boolean(read) -> None:
    """YAML 1.1 takes an unquoted `on` for true; here it names a container's host."""
    inventory = read("""
        hosts: {yes: {transport: local}}
        containers: {c: {on: "yes", kind: docker}}
    """)

    assert inventory.containers["c"].on == "yes"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)


@given(st.dictionaries(variables, texts, max_size=5), st.lists(texts, max_size=4))
def test_any_text_that_yaml_can_write_comes_back(env, command) -> None:
    """Variables and arguments survive a round trip through YAML's writer, whatever they hold."""
    document = {
        "hosts": {"box": {"transport": "local"}},
        "profiles": {"p": {"engine": "command", "env": env, "command": command}},
    }

    profile = parse(yaml.safe_dump(document)).profile("p")

    assert dict(profile.env) == env
    assert profile.command == tuple(command)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | texts,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_any_json_value_of_a_flag_comes_back(value) -> None:
    """A mapping under a flag is JSON, and JSON is what it stays."""
    document = {
        "hosts": {"box": {"transport": "local"}},
        "profiles": {"p": {"engine": "vllm", "args": {"x": {"value": value}}}},
    }

    profile = parse(yaml.safe_dump(document)).profile("p")

    assert profile.args["x"] == {"value": value}
