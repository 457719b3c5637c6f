"""Each thing that can be wrong in hosts.yaml, and the words that say so."""

from __future__ import annotations

import pytest

from eagleops.errors import InventoryError
from eagleops.inventory import parse

PCT = "hosts: {pve: {address: root@192.0.2.6}}\n"

DOCUMENT = {
    "tab": (
        "hosts:\n\tbox: 1\n",
        "hosts.yaml:2: a tab stands where YAML takes blanks alone\nIndent with blanks.",
    ),
    "empty": ("", "hosts.yaml: the file is empty\nIt needs at least one host."),
    "comments alone": ("# a\n", "hosts.yaml: the file is empty\nIt needs at least one host."),
    "a list": (
        "- a\n",
        "hosts.yaml:1: expected a mapping with hosts and profiles, got a list",
    ),
    "a text": (
        "\nhello\n",
        "hosts.yaml:2: expected a mapping with hosts and profiles, got the text 'hello'",
    ),
    "two documents": (
        "hosts: {a: {transport: sim}}\n---\nhosts: {}\n",
        "hosts.yaml:2: a second document begins here\nTake the line --- out.",
    ),
    "colon in a value": (
        "hosts: {}\nname: a: b\n",
        (
            "hosts.yaml:2: this is no YAML: mapping values are not allowed here\n"
            "A colon and a blank inside a value: put the value in quotes."
        ),
    ),
    "at sign": (
        "hosts: @x\n",
        (
            "hosts.yaml:1: this is no YAML: found character '@' that cannot start any token "
            "(while scanning for the next token)\nPut the value in quotes."
        ),
    ),
    "unclosed quote": (
        "hosts: 'x\n\n",
        (
            "hosts.yaml:3: this is no YAML: found unexpected end of stream "
            "(while scanning a quoted scalar)"
        ),
    ),
    "control character": (
        "hosts:\n  a: \x01\n",
        "hosts.yaml:2: the character U+0001 may not stand in YAML",
    ),
    "unknown alias": ("hosts: *a\n", "hosts.yaml:1: this is no YAML: found undefined alias 'a'"),
    "an alias of itself": (
        "hosts: &a {b: *a}\n",
        "hosts.yaml:1: hosts.b: an alias names a value that it stands in",
    ),
    "too many aliases": (
        (
            "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
            "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
            "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
        ),
        "hosts.yaml:1: e[7][8][8][8][9]: it has more than 100,000 values",
    ),
    "nested too deeply": (
        "hosts: " + "[" * 1500,
        "hosts.yaml: it is nested too deeply to be an inventory",
    ),
    "a tag": (
        "hosts: !!python/object:os.system {}\n",
        "hosts.yaml:1: hosts: the tag tag:yaml.org,2002:python/object:os.system means nothing here",
    ),
    "a key twice": (
        "hosts:\n  box: {transport: local}\n  box: {transport: sim}\n",
        (
            "hosts.yaml:3: hosts.box: the key stands here and in line 2: YAML would drop "
            "one of them\n"
            "Keep one."
        ),
    ),
    "a key that is a list": ("? [a]\n: b\n", "hosts.yaml:1: a key must be a name"),
    "a merge of no mapping": (
        "hosts: {<<: [1]}\n",
        "hosts.yaml:1: hosts: << expected a mapping, got the number 1",
    ),
}

SECTIONS = {
    "unknown section": (
        "profile: {}\n",
        "hosts.yaml:2: profile: there is no section profile\nDid you mean profiles?",
    ),
    "a section that is a list": (
        "profiles: [a]\n",
        "hosts.yaml:2: profiles: expected a mapping of names, got a list",
    ),
    "no host": ("hosts: {}\n", "hosts.yaml: hosts: there is no host\nIt needs at least one."),
    "a key of ours": (
        "hosts: {box: {transport: local, (name): x}}\n",
        (
            "hosts.yaml:1: hosts.box.(name): there is no key (name) here\nIt may hold transport, "
            "address, python, host_keys, known_hosts, identity_file, ssh_config, via, "
            "connect_timeout_s, idle_mib, state_home, sim."
        ),
    ),
    "unknown key": (
        "hosts: {box: {transprot: local}}\n",
        (
            "hosts.yaml:1: hosts.box.transprot: there is no key transprot here\n"
            "Did you mean transport?"
        ),
    ),
    "a key of ssh_config": (
        "hosts: {box: {hostname: a, address: b}}\n",
        (
            "hosts.yaml:1: hosts.box.hostname: there is no key hostname here\n"
            "Write address: user@host."
        ),
    ),
    "a key like no other": (
        "defaults: {zzz: 1}\n",
        "hosts.yaml:2: defaults.zzz: there is no key zzz here\nIt may hold host, profile.",
    ),
    "an entry that is no mapping": (
        "hosts: {box: local}\n",
        "hosts.yaml:1: hosts.box: expected a mapping, got the text 'local'",
    ),
    "a name with a blank": (
        "hosts: {my box: {transport: local}}\n",
        (
            "hosts.yaml:1: hosts.my box: 'my box' cannot be a name\nLetters, digits, dots, "
            "dashes and "
            "underscores, 64 at most; a letter or a digit first."
        ),
    ),
    "a name that leads out": (
        "profiles: {../x: {engine: sglang}}\n",
        (
            "hosts.yaml:2: profiles.../x: '../x' cannot be a name\nLetters, digits, dots, "
            "dashes and "
            "underscores, 64 at most; a letter or a digit first."
        ),
    ),
    "a name twice": (
        "groups: {box: [box]}\n",
        "hosts.yaml:2: groups.box: hosts.box in line 1 has that name too",
    ),
    "default host unknown": (
        "defaults: {host: bax}\n",
        "hosts.yaml:2: defaults.host: there is no host or container bax\nDid you mean box?",
    ),
    "default profile unknown": (
        "defaults: {profile: x}\n",
        "hosts.yaml:2: defaults.profile: there is no profile x",
    ),
    "default profile abstract": (
        "defaults: {profile: x}\nprofiles: {x: {abstract: true}}\n",
        "hosts.yaml:2: defaults.profile: profile x is abstract: nothing to launch",
    ),
    "default that is no name": (
        "defaults: {host: no}\n",
        (
            "hosts.yaml:2: defaults.host: expected a text, got the boolean no\n"
            "Put it in quotes for a text: 'no'."
        ),
    ),
    "group of unknowns": (
        "groups:\n  g:\n    - box\n    - zzz\n",
        "hosts.yaml:5: groups.g[1]: there is no host or container zzz\nThere is only box.",
    ),
    "a member twice": (
        "groups: {g: [box, box]}\n",
        "hosts.yaml:2: groups.g[1]: box stands in the group twice",
    ),
    "a group of one that is no list": (
        "groups: {g: box}\n",
        "hosts.yaml:2: groups.g: expected a list, got the text 'box'\nWrite [box].",
    ),
}

MACHINES = {
    "unknown transport": (
        "hosts: {box: {transport: shh}}\n",
        (
            "hosts.yaml:1: hosts.box.transport: expected one of ssh, local, sim, got the "
            "text 'shh'\n"
            "Did you mean ssh?"
        ),
    ),
    "no address": (
        "hosts: {box: {python: python3}}\n",
        (
            "hosts.yaml:1: hosts.box: a host that is reached by SSH needs an address\n"
            "Write `address: user@host`, or `transport: local` for this machine."
        ),
    ),
    "an address that is no use": (
        "hosts: {box: {transport: local, address: a@b}}\n",
        "hosts.yaml:1: hosts.box.address: transport local has no use for it",
    ),
    "sim settings that are no use": (
        "hosts: {box: {address: a@b, sim: {gpus: 1}}}\n",
        "hosts.yaml:1: hosts.box.sim: transport ssh has no use for it",
    ),
    "an address with a blank": (
        "hosts: {box: {address: root @host}}\n",
        (
            "hosts.yaml:1: hosts.box.address: expected user@host, user@host:port, or a Host of "
            "ssh_config, got the text 'root @host'"
        ),
    ),
    "an address that is an option": (
        "hosts: {box: {address: -oProxyCommand=x}}\n",
        (
            "hosts.yaml:1: hosts.box.address: the text '-oProxyCommand=x' begins with a dash: ssh "
            "would take it for an option"
        ),
    ),
    "python as a list": (
        "hosts: {box: {address: a, python: [python3]}}\n",
        "hosts.yaml:1: hosts.box.python: expected a text, got a list",
    ),
    "python as a number": (
        "hosts: {box: {address: a, python: 3.11}}\n",
        (
            "hosts.yaml:1: hosts.box.python: expected a text, got the number 3.11\n"
            "Put it in quotes for a text: '3.11'."
        ),
    ),
    "a path that a shell would have to read": (
        "hosts: {box: {address: a, python: ~/ml-env/bin/python3}}\n",
        (
            "hosts.yaml:1: hosts.box.python: no shell reads the text '~/ml-env/bin/python3', so ~ "
            "would stay ~\nWrite the whole path."
        ),
    ),
    "an empty text": (
        "hosts: {box: {address: a, python: ''}}\n",
        "hosts.yaml:1: hosts.box.python: expected a text that is not empty, got the text ''",
    ),
    "nothing": (
        "hosts:\n  box:\n    address: a\n    python:\n",
        "hosts.yaml:4: hosts.box.python: expected a text, got nothing",
    ),
    "idle_mib as a text": (
        "hosts: {box: {address: a, idle_mib: '100'}}\n",
        (
            "hosts.yaml:1: hosts.box.idle_mib: expected a number from 0 up, got the text '100'\n"
            "Write 100 without the quotes."
        ),
    ),
    "idle_mib below 0": (
        "hosts: {box: {address: a, idle_mib: -1}}\n",
        "hosts.yaml:1: hosts.box.idle_mib: expected a number from 0 up, got the number -1",
    ),
    "a time that is none": (
        "hosts: {box: {address: a, connect_timeout_s: 0}}\n",
        (
            "hosts.yaml:1: hosts.box.connect_timeout_s: expected a number of seconds above "
            "0, got the "
            "number 0"
        ),
    ),
    "a relative path over there": (
        "hosts: {box: {address: a, state_home: state}}\n",
        (
            "hosts.yaml:1: hosts.box.state_home: expected a path from / on, got the text 'state'\n"
            "Nothing over there is relative to this file."
        ),
    ),
    "too many pretended GPUs": (
        "hosts: {box: {transport: sim, sim: {gpus: 1000}}}\n",
        "hosts.yaml:1: hosts.box.sim.gpus: expected a number from 1 to 32, got the number 1000",
    ),
    "a circle of jump hosts": (
        "hosts:\n  a: {address: a, via: b}\n  b: {address: b, via: b}\n",
        (
            "hosts.yaml:2: hosts.a.via: the way leads in a circle: a -> b -> b\n"
            "hosts.yaml:3: hosts.b.via: the way leads in a circle: b -> b"
        ),
    ),
    "a jump host that is none": (
        "hosts:\n  a: {address: a, via: here}\n  here: {transport: local}\n",
        "hosts.yaml:2: hosts.a.via: host here is not reached by SSH",
    ),
    "a container on nothing": (
        PCT + "containers: {c: {on: pv, vmid: 129}}\n",
        "hosts.yaml:2: containers.c.on: there is no host pv\nDid you mean pve?",
    ),
    "a container without a host": (
        PCT + "containers: {c: {vmid: 129}}\n",
        "hosts.yaml:2: containers.c: the key on is missing",
    ),
    "a container without a number": (
        PCT + "containers: {c: {on: pve}}\n",
        (
            "hosts.yaml:2: containers.c: a container of kind pct needs a vmid\n"
            "Write `vmid: 129`, or `kind: docker`, lxc or incus."
        ),
    ),
    "a number as a text": (
        PCT + "containers: {c: {on: pve, vmid: '129'}}\n",
        (
            "hosts.yaml:2: containers.c.vmid: expected a number from 1 to 999999999, got the text "
            "'129'\nWrite 129 without the quotes."
        ),
    ),
    "a number for docker": (
        PCT + "containers: {c: {on: pve, kind: docker, vmid: 3}}\n",
        "hosts.yaml:2: containers.c.vmid: kind docker has no use for it\nIt goes by name.",
    ),
    "a name for pct": (
        PCT + "containers: {c: {on: pve, vmid: 3, name: x}}\n",
        "hosts.yaml:2: containers.c.name: kind pct has no use for it\nIt goes by vmid.",
    ),
    "SSH settings without an address": (
        PCT + "containers: {c: {on: pve, vmid: 3, host_keys: accept-new}}\n",
        (
            "hosts.yaml:2: containers.c.host_keys: without an address of its own it is reached "
            "through its host\nWrite it at host pve, or give the container an address."
        ),
    ),
}

PROFILES = {
    "port as a text": (
        "profiles: {p: {engine: sglang, port: '8000'}}\n",
        (
            "hosts.yaml:2: profiles.p.port: expected a number from 1 to 65535, got the text "
            "'8000'\n"
            "Write 8000 without the quotes."
        ),
    ),
    "port too high": (
        "profiles: {p: {engine: sglang, port: 70000}}\n",
        "hosts.yaml:2: profiles.p.port: expected a number from 1 to 65535, got the number 70000",
    ),
    "port in hexadecimal": (
        "profiles: {p: {engine: sglang, port: 0x1f90}}\n",
        "hosts.yaml:2: profiles.p.port: expected a number from 1 to 65535, got the number 0x1f90",
    ),
    "a boolean as a variable": (
        "profiles: {p: {engine: sglang, env: {NCCL_IB_DISABLE: on}}}\n",
        (
            "hosts.yaml:2: profiles.p.env.NCCL_IB_DISABLE: expected a text or a number, got the "
            "boolean on\nPut it in quotes: 'on'. Unquoted, YAML 1.1 reads true or false."
        ),
    ),
    "a variable with nothing": (
        "profiles: {p: {engine: sglang, env: {A: }}}\n",
        (
            "hosts.yaml:2: profiles.p.env.A: expected a text or a number, got nothing\n"
            "Write null to remove it, or '' for an empty value."
        ),
    ),
    "a variable that is a list": (
        "profiles: {p: {engine: sglang, env: {A: [1]}}}\n",
        "hosts.yaml:2: profiles.p.env.A: expected a text or a number, got a list",
    ),
    "a variable's name": (
        "profiles: {p: {engine: sglang, env: {NCCL-ALGO: Ring}}}\n",
        (
            "hosts.yaml:2: profiles.p.env.NCCL-ALGO: 'NCCL-ALGO' is no variable's name\n"
            "Letters, digits and underscores; no digit first."
        ),
    ),
    "a NUL byte": (
        'profiles: {p: {engine: sglang, env: {A: "x\\0"}}}\n',
        (
            "hosts.yaml:2: profiles.p.env.A: it holds a NUL byte or half a surrogate pair: "
            "no process "
            "can get it"
        ),
    ),
    "env as a list": (
        "profiles: {p: {engine: sglang, env: [A=1]}}\n",
        "hosts.yaml:2: profiles.p.env: expected a mapping, got a list",
    ),
    "a flag with dashes": (
        "profiles: {p: {engine: sglang, args: {--tp-size: 8}}}\n",
        (
            "hosts.yaml:2: profiles.p.args.--tp-size: '--tp-size' is no flag's name\n"
            "Write it without its dashes: tp-size."
        ),
    ),
    "a flag that is false": (
        "profiles: {p: {engine: sglang, args: {trust-remote-code: false}}}\n",
        (
            "hosts.yaml:2: profiles.p.args.trust-remote-code: false is no flag's value\n"
            "null leaves a flag out; a text 'false' in quotes is handed on; some flags are "
            "turned off "
            "by another one, no-<flag>: true."
        ),
    ),
    "a flag with nothing": (
        "profiles: {p: {engine: sglang, args: {tp-size: }}}\n",
        (
            "hosts.yaml:2: profiles.p.args.tp-size: expected a value, got nothing\n"
            "true for a bare flag, null to leave it out, '' for an empty value."
        ),
    ),
    "a list in a list": (
        "profiles: {p: {engine: sglang, args: {a: [[1]]}}}\n",
        "hosts.yaml:2: profiles.p.args.a[0]: expected a text or a number, got a list",
    ),
    "a boolean that JSON does not know": (
        "profiles: {p: {engine: sglang, args: {a: {b: yes}}}}\n",
        (
            "hosts.yaml:2: profiles.p.args.a.b: expected a value that JSON knows, got the "
            "boolean yes\n"
            "Put it in quotes for a text: 'yes'."
        ),
    ),
    "a number that JSON does not know": (
        "profiles: {p: {engine: sglang, args: {a: {b: 010}}}}\n",
        (
            "hosts.yaml:2: profiles.p.args.a.b: expected a value that JSON knows, got the "
            "number 010\n"
            "Put it in quotes for a text: '010'."
        ),
    ),
    "a command as a text": (
        "profiles: {p: {engine: command, command: python3 -m x}}\n",
        (
            "hosts.yaml:2: profiles.p.command: expected a list, got the text 'python3 -m x'\n"
            "Write [python3, -m, x]."
        ),
    ),
    "a variable's name to inherit": (
        "profiles: {p: {engine: sglang, inherit: ['A=1']}}\n",
        (
            "hosts.yaml:2: profiles.p.inherit[0]: expected a variable's name (letters, digits, "
            "underscores; no digit first), got the text 'A=1'"
        ),
    ),
    "GPUs twice": (
        "profiles: {p: {engine: sglang, gpus: [0, 0]}}\n",
        "hosts.yaml:2: profiles.p.gpus: expected different GPU indices from 0 up, got [0, 0]",
    ),
    "an unknown engine": (
        "profiles: {p: {engine: slang}}\n",
        "hosts.yaml:2: profiles.p.engine: there is no engine slang\nDid you mean sglang?",
    ),
    "no engine": (
        "profiles: {p: {model: m}}\n",
        (
            "hosts.yaml:2: profiles.p: neither it nor a profile that it extends names an engine\n"
            "Write `engine:` (sglang, vllm, command), or `abstract: true` if it is only "
            "there to be "
            "extended."
        ),
    ),
    "an engine taken away": (
        "profiles: {a: {engine: vllm}, p: {extends: a, engine: null}}\n",
        (
            "hosts.yaml:2: profiles.p: neither it nor a profile that it extends names an engine\n"
            "Write `engine:` (sglang, vllm, command), or `abstract: true` if it is only there to "
            "be extended."
        ),
    ),
    "an unknown parent": (
        "profiles: {base: {abstract: true}, p: {engine: vllm, extends: bsae}}\n",
        "hosts.yaml:2: profiles.p.extends: there is no profile bsae\nDid you mean base?",
    ),
    "a circle": (
        "profiles:\n  a: {extends: b}\n  b: {extends: c}\n  c: {extends: [b]}\n",
        (
            "hosts.yaml:4: profiles.b.extends: profiles extend one another in a circle: b "
            "-> c -> b\n"
            "hosts.yaml:5: profiles.c.extends: profiles extend one another in a circle: c -> b -> c"
        ),
    ),
    "abstract as a text": (
        "profiles: {p: {abstract: 'true'}}\n",
        "hosts.yaml:2: profiles.p.abstract: expected true or false, got the text 'true'",
    ),
    "another tool's key": (
        "profiles: {p: {engine: vllm, environment: {A: 1}}}\n",
        "hosts.yaml:2: profiles.p.environment: there is no key environment here\nWrite env.",
    ),
    "a relative folder": (
        "profiles: {p: {engine: vllm, cwd: work}}\n",
        (
            "hosts.yaml:2: profiles.p.cwd: expected a path from / on, got the text 'work'\n"
            "Nothing over there is relative to this file."
        ),
    ),
}

CASES = {**DOCUMENT, **SECTIONS, **MACHINES, **PROFILES}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_told_with_its_place_and_its_way_out(refusal, case) -> None:
    """File, line and key; expected and got; what was meant."""
    text, expected = CASES[case]
    if case in DOCUMENT:
        with pytest.raises(InventoryError) as caught:
            parse(text)
        assert str(caught.value) == expected
    else:
        assert refusal(text) == expected


def test_all_that_is_wrong_in_a_file_is_told_at_once(read) -> None:
    """The first problem whole, the others in a line each, in the order of the file."""
    with pytest.raises(InventoryError) as caught:
        read("""
            hosts:
              a: {adress: x}
              b: {address: y, idle_mib: no}
            profiles:
              p: {engine: vllm, port: x, env: {A: on, B: off}, args: {--x: 1}}
            grups: {}
        """)

    error = caught.value
    assert (error.file, error.line, error.key) == ("hosts.yaml", 3, "hosts.a.adress")
    assert error.exit_status == 2
    assert [line.partition(": ")[0] for line in error.more] == [
        "hosts.yaml:4",
        "hosts.yaml:6",
        "hosts.yaml:6",
        "hosts.yaml:6",
        "hosts.yaml:6",
        "hosts.yaml:7",
    ]
    assert str(error).splitlines()[:3] == [
        "hosts.yaml:3: hosts.a.adress: there is no key adress here",
        "Did you mean address?",
        "hosts.yaml:4: hosts.b.idle_mib: expected a number from 0 up, got the boolean no",
    ]
    assert error.to_dict()["more"] == error.more


def test_a_long_wrong_value_is_told_by_its_beginning(refusal) -> None:
    """An error stays readable, whatever was pasted into the file."""
    told = refusal(f"profiles: {{p: {{engine: vllm, port: {'x' * 500}}}}}\n")

    assert told == (
        "hosts.yaml:2: profiles.p.port: expected a number from 1 to 65535, got the text "
        f"'{'x' * 60}...'"
    )


SECRETS = {
    "variables in one text": "env: HF_TOKEN=hush",
    "a text in place of the variables": "env:\n      HF_TOKEN=hush",
    "variables without colons": "env: {HF_TOKEN=hush}",
    "a variable twice": "env: {HF_TOKEN: hush, HF_TOKEN: hush}",
    "a variable's name in quotes": "env: {'HF_TOKEN=hush': x}",
    "an inherited value": "inherit: [HF_TOKEN=hush]",
    "a secret that is nowhere": "env: {HF_TOKEN: {secret: hush}}",
    "a secret that is more": "env: {HF_TOKEN: {secret: env:X, value: hush}}",
    "a value beside a list": "env: {HF_TOKEN: [hush]}",
    "flags in one text": "args: --api-key hush",
    "a flag without a colon": "args: {--api-key hush}",
    "a flag joined to its value": "args: {--api-key=hush}",
    "a command in one text": "command: serve --api-key hush --port 1",
    "named values in one text": "values: api_key=hush",
    "a key of the profile": "HF_TOKEN=hush: x",
}


@pytest.mark.parametrize("profile", SECRETS.values(), ids=SECRETS)
def test_what_is_wrong_about_a_secret_is_told_without_it(read, profile) -> None:
    """By its line and its key, whatever was written in place of a colon."""
    with pytest.raises(InventoryError) as caught:
        read(f"profiles:\n  p:\n    engine: vllm\n    {profile}\n")

    told = f"{caught.value} {caught.value.to_dict()}"
    assert "hush" not in told
    assert "hosts.yaml:5: profiles.p" in told or "hosts.yaml:6: profiles.p" in told


def test_a_number_under_a_secrets_name_is_not_told_either(refusal) -> None:
    """Where a flag's value has to be a text."""
    told = refusal("profiles: {p: {engine: vllm, args: {x: {api-key: 0x5ec4e7}}}}\n")

    assert "5ec4e7" not in told
    assert "profiles.p.args.x.api-key: " in told
