"""Each thing that can be wrong in the nightly section, and the words that say so."""

from __future__ import annotations

import pytest

from eagleops.errors import InventoryError

AROUND = (
    "hosts: {box: {transport: local}}\n"
    "groups: {boxes: [box]}\n"
    "profiles: {base: {abstract: true}, baseline: {engine: sglang, model: m}}\n"
)
# One suite's own line, and what is said of it.
WRONG = {
    "a key that is none": (
        "hots: [box]",
        "nightly.default.hots: there is no key hots here\nDid you mean hosts?",
    ),
    "what other tools call it": (
        "cron: daily",
        "nightly.default.cron: there is no key cron here\nWrite schedule.",
    ),
    "an unknown host": (
        "hosts: [bxo]",
        "nightly.default.hosts[0]: there is no host, container or group bxo\nDid you mean box?",
    ),
    "a host twice": (
        "hosts: [box, boxes, box]",
        "nightly.default.hosts[2]: box stands in the suite twice",
    ),
    "an unknown profile": (
        "profiles: [{profile: basline}]",
        (
            "nightly.default.profiles[0].profile: there is no profile basline\n"
            "Did you mean baseline?"
        ),
    ),
    "an abstract profile": (
        "profiles: base",
        "nightly.default.profiles: profile base is abstract: nothing to launch",
    ),
    "a profile twice": (
        "profiles: [baseline, {profile: baseline, pin: 1}]",
        "nightly.default.profiles[1].profile: baseline stands in the suite twice",
    ),
    "a pin that names no run": (
        "profiles: [{profile: baseline, pin: best}]",
        (
            "nightly.default.profiles[0].pin: expected a run's number or 8 or more digits of its "
            "uuid, got 'best'\n`eagleops runs` lists them."
        ),
    ),
    "a profile without a name": (
        "profiles: [{pin: 4}]",
        "nightly.default.profiles[0]: the key profile is missing",
    ),
    "a folder in nobody's home": (
        "reports: ~nobody-is-called-so/nights",
        (
            "nightly.default.reports: nobody's home is ~nobody-is-called-so here\n"
            "Write the whole path."
        ),
    ),
    "an unknown check": (
        "checks: {disc: warn}",
        "nightly.default.checks.disc: there is no check disc\nDid you mean disk?",
    ),
    "an unknown severity": (
        "checks: {disk: fial}",
        (
            "nightly.default.checks.disk: expected one of warn, fail, off, got the text 'fial'\n"
            "Did you mean fail?"
        ),
    ),
    "a limit where a severity stands": (
        "checks: {disk: 20480}",
        (
            "nightly.default.checks.disk: expected a severity (warn, fail, off), got the number "
            "20480\nA limit? Write {limit: 20480}."
        ),
    ),
    "a limit of a check that has none": (
        "checks: {xid: {limit: 3}}",
        (
            "nightly.default.checks.xid.limit: xid has no limit: there is no figure in it\n"
            "It takes a severity alone."
        ),
    ),
    "a limit that is no number": (
        "checks: {disk: {limit: 20 GiB}}",
        "nightly.default.checks.disk.limit: expected a number, got the text '20 GiB'",
    ),
    "a limit below zero": (
        "checks: {disk: {limit: -1}}",
        "nightly.default.checks.disk.limit: expected a limit from 0 up, got -1",
    ),
    "a share above one": (
        "checks: {speed: {limit: 300}}",
        "nightly.default.checks.speed.limit: expected a limit from 0 to 100 %, got 300",
    ),
    "a check of a profile that is not in the suite": (
        'checks: {"speed:baseline": warn}',
        "nightly.default.checks.speed:baseline: 'baseline' is no profile of this suite",
    ),
    "a check of doctor's that there is none of": (
        'checks: {"doctor:ptrac": off}',
        (
            "nightly.default.checks.doctor:ptrac: 'ptrac' is no check of doctor\n"
            "Did you mean ptrace?"
        ),
    ),
    "one of a host's single checks": (
        'checks: {"disk:root": off}',
        (
            "nightly.default.checks.disk:root: disk is one check for a host: nothing stands "
            "behind a colon\nWrite disk."
        ),
    ),
    "a command's severity in the wrong place": (
        'checks: {"command:smoke": off}',
        (
            "nightly.default.checks.command:smoke: what a command's fault is stands with the "
            "command\nWrite severity: at commands.smoke."
        ),
    ),
    "a command in a shell's spelling": (
        "commands: {smoke: {run: nvidia-smi -L}}",
        (
            "nightly.default.commands.smoke.run: expected a list, got the text 'nvidia-smi -L'\n"
            "Write [nvidia-smi, -L]."
        ),
    ),
    "a command that is none": (
        "commands: {smoke: {run: []}}",
        (
            "nightly.default.commands.smoke.run: expected a program and its arguments, got "
            "nothing to run"
        ),
    ),
    "a home that no shell finds": (
        "commands: {smoke: {run: [~/check]}}",
        (
            "nightly.default.commands.smoke.run: no shell reads '~/check', so ~ would stay ~\n"
            "Write the whole path."
        ),
    ),
    "a command's name": (
        "commands: {-a: {run: [b]}}",
        (
            "nightly.default.commands.-a: '-a' cannot be a name\nLetters, digits, dots, dashes "
            "and underscores, 64 at most; a letter or a digit first."
        ),
    ),
    "an expression that is none": (
        "commands: {smoke: {run: [a], stdout: (ok}}",
        (
            "nightly.default.commands.smoke.stdout: '(ok' is no regular expression: missing ), "
            "unterminated subpattern at position 0\nIn quotes, YAML's 'single' ones."
        ),
    ),
    "an expression that finds everything": (
        "commands: {smoke: {run: [a], stdout: ''}}",
        (
            "nightly.default.commands.smoke.stdout: an empty pattern is found in everything\n"
            "Leave it out to expect no output."
        ),
    ),
    "a figure that is not marked": (
        "commands: {smoke: {run: [a], number: '[0-9]+'}}",
        (
            "nightly.default.commands.smoke.number: '[0-9]+' has no group: nothing says which "
            "part is the figure\nPut the figure in parentheses: '([0-9.]+) GB/s'."
        ),
    ),
    "a limit of no figure": (
        "commands: {smoke: {run: [a], lowest: 3}}",
        (
            "nightly.default.commands.smoke.lowest: it is of a figure, and nothing says where "
            "the figure stands\nWrite number: '([0-9.]+) GB/s', the figure in parentheses."
        ),
    ),
    "a band that nothing is in": (
        "commands: {smoke: {run: [a], number: (.), lowest: 3, highest: 2}}",
        "nightly.default.commands.smoke.lowest: no figure is at least 3 and at most 2",
    ),
    "an exit status that none is": (
        "commands: {smoke: {run: [a], exit_status: 256}}",
        (
            "nightly.default.commands.smoke.exit_status: expected a number from 0 to 255, got "
            "the number 256"
        ),
    ),
    "a prompt that is not shipped": (
        "measure: {prompt: pose}",
        (
            "nightly.default.measure.prompt: expected one of code, long, prose, short, got the "
            "text 'pose'\nDid you mean prose?"
        ),
    ),
    "too few tokens for a speed": (
        "measure: {tokens: 1}",
        "nightly.default.measure.tokens: expected a number from 2 up, got the number 1",
    ),
    "a policy that is none": (
        "busy: kill",
        (
            "nightly.default.busy: expected one of skip, wait, force, got the text 'kill'\n"
            "Did you mean skip?"
        ),
    ),
    "a time with its unit": (
        "limit_s: 4h",
        (
            "nightly.default.limit_s: expected a number of seconds above 0, got the text '4h'\n"
            "Write 14400."
        ),
    ),
    "a time that is none": (
        "wait_limit_s: 0",
        ("nightly.default.wait_limit_s: expected a number of seconds above 0, got the number 0"),
    ),
    "a file that node_exporter passes over": (
        "prometheus: /var/lib/node_exporter/eagleops.txt",
        (
            "nightly.default.prometheus: node_exporter's textfile collector reads *.prom alone, "
            "not 'eagleops.txt'\nCall it eagleops.prom."
        ),
    ),
    "a webhook that is no URL": (
        "notify: [{url: hooks.example.com/hush}]",
        (
            "nightly.default.notify[0].url: expected a URL that begins with https:// or http:// "
            "and a host\nOr, since it is a secret, by reference: url: {secret: env:NAME}."
        ),
    ),
    "a webhook's port": (
        "notify: [{url: 'https://example.com:port/hush'}]",
        (
            "nightly.default.notify[0].url: it is no URL: its host or its port cannot be read\n"
            "Or, since it is a secret, by reference: url: {secret: env:NAME}."
        ),
    ),
    "a webhook with a password in it": (
        "notify: [{url: 'https://me:hush@example.com'}]",
        (
            "nightly.default.notify[0].url: a URL with a user and a password in it ends up in "
            "other people's logs\nSend them as a header: {Authorization: {secret: env:NAME}}."
        ),
    ),
    "a webhook that is a bare URL": (
        "notify: ['https://hooks.example.com/hush']",
        (
            "nightly.default.notify[0]: expected a mapping with a url in it\n"
            "Write - {url: {secret: env:NAME}, shape: slack}."
        ),
    ),
    "a bare URL for all webhooks": (
        "notify: https://hooks.example.com/hush",
        (
            "nightly.default.notify: expected a list of webhooks\n"
            "Write - {url: {secret: env:NAME}, shape: slack}."
        ),
    ),
    "a secret that is nowhere": (
        "notify: [{url: {secret: SLACK_URL}}]",
        (
            "nightly.default.notify[0].url: it says of no secret where its value is\n"
            "Write `secret: env:NAME` (a variable where eagleops runs), `secret: file:PATH` or "
            "`secret: cmd:COMMAND`."
        ),
    ),
    "a header's name": (
        "notify: [{url: 'https://example.com', headers: {'a b': hush}}]",
        "nightly.default.notify[0].headers.a b: 'a b' is no header's name",
    ),
    "a header's value": (
        'notify: [{url: "https://example.com", headers: {A: "hush\\nhush"}}]',
        (
            "nightly.default.notify[0].headers.A: the value of A holds what no header can: a "
            "line break, or other than Latin-1"
        ),
    ),
    "a schedule that YAML takes for something else": (
        "schedule: *-*-* 04:30:00",
        (
            "this is no YAML: expected alphabetic or numeric character, but found '*' "
            "(while scanning an alias)\nPut the value in quotes."
        ),
    ),
    "an hour that there is not": (
        "schedule: 25:30",
        (
            "nightly.default.schedule: '25:30' is no calendar event: there is no hour 25: they "
            "go from 0 to 23\nFor example '*-*-* 04:30:00', 'Mon..Fri 04:30', "
            "'*-*-* 04:30:00 Europe/Berlin'."
        ),
    ),
    "a time zone that there is not": (
        "schedule: daily Europe/Berln",
        (
            "nightly.default.schedule: there is no time zone Europe/Berln\n"
            "Did you mean Europe/Berlin?"
        ),
    ),
    "no mapping": (
        "commands: [smoke]",
        "nightly.default.commands: expected a mapping, got a list",
    ),
}

ALL_AT_ONCE = """
6: nightly.-x: '-x' cannot be a name
6: nightly.-x: it names no hosts, and defaults name none
8: nightly.default.hosts[0]: there is no host, container or group bxo. Did you mean box?
9: nightly.default.profiles[0]: there is no profile basline. Did you mean baseline?
9: nightly.default.profiles[1]: the key profile is missing
10: nightly.default.checks.disc: there is no check disc. Did you mean disk?
10: nightly.default.checks.disk.limit: expected a number, got the text 'x'
11: nightly.default.busy: expected one of skip, wait, force, got the text 'kil'. Did you mean skip?
12: nightly.default.notify[0].url: expected a URL that begins with https:// or http:// and a host
12: nightly.default.notify[1]: the key url is missing
12: nightly.default.notify[1].shape: expected one of json, slack, got the text 'slak'. Did you mean slack?
"""  # noqa: E501


@pytest.mark.parametrize(("suite", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_its_place_and_the_way_out(refusal, suite, words) -> None:
    """File, line, key, what was expected and got, what to write instead; nothing secret."""
    text = f"defaults: {{host: box}}\n{AROUND}nightly:\n  default:\n    {suite}\n"

    told = refusal(text)

    assert told == f"hosts.yaml:7: {words}"
    assert "hush" not in told


def test_a_suite_without_any_host_is_refused(refusal) -> None:
    """Where no default says which one is meant."""
    assert refusal(f"{AROUND}nightly: {{default: {{}}}}") == (
        "hosts.yaml:4: nightly.default: it names no hosts, and defaults name none\n"
        "Write hosts: [box]."
    )


def test_two_suites_do_not_write_the_same_metrics(refusal) -> None:
    """The one that runs last would make the other's faults disappear."""
    told = refusal(f"""\
{AROUND}defaults: {{host: box}}
nightly:
  a: {{prometheus: x.prom}}
  b: {{prometheus: x.prom}}
""")

    assert told == (
        "hosts.yaml:7: nightly.b.prometheus: nightly.a.prometheus in line 6 is that file: one "
        "undoes the other\nWrite a file for each suite."
    )


def test_everything_is_told_in_one_pass(read) -> None:
    """Wrong values, wrong names and wrong sections together, with near names."""
    with pytest.raises(InventoryError) as caught:
        read(f"""\
{AROUND}containers: {{llm: {{on: box}}}}
nightly:
  -x: {{}}
  default:
    hosts: [bxo]
    profiles: [basline, {{pin: 4}}]
    checks: {{disc: off, disk: {{limit: x}}}}
    busy: kil
    notify: [{{url: 3}}, {{shape: slak}}]
""")

    error = caught.value
    told = "\n".join((str(error).partition("\n")[0], *error.more))
    assert told.replace("hosts.yaml:", "") == ALL_AT_ONCE.strip()
