"""What is read from the nightly section of hosts.yaml."""

from __future__ import annotations

import textwrap
from pathlib import Path

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eagleops.errors import InventoryError
from eagleops.inventory import parse, schema
from eagleops.inventory.suite import (
    CheckEntry,
    CommandCheck,
    MeasureEntry,
    ProfileCheck,
    SuiteEntry,
    WebhookEntry,
)
from eagleops.measuring import prompts
from eagleops.nights.catalogue import DOCTOR, KINDS
from eagleops.profile import SecretReference

AROUND = """
defaults: {host: box}
hosts: {box: {transport: local}, sim: {transport: sim}}
containers: {llm: {on: box, vmid: 129}}
groups: {boxes: [sim, llm]}
profiles:
  base: {abstract: true}
  baseline: {engine: sglang, model: m}
  eagle3: {engine: sglang, model: m}
"""

WHOLE = """
nightly:
  default:
    hosts: [box, boxes]
    profiles: [baseline, {profile: eagle3, pin: 42}]
    commands:
      smoke: {run: [python3, -c, print(1), 8], stdout: 1, severity: warn}
      nccl:
        run: [/opt/nccl-tests/all_reduce_perf, -g, 8]
        exit_status: 0
        number: 'bandwidth *: ([0-9.]+)'
        lowest: 40
        highest: 1e3
        unit: GB/s
        timeout_s: 300
        needs_idle_gpus: no
    checks: {disk: {limit: 20480}, packages: off, xid: warn, "speed:eagle3": {limit: 5.5}}
    measure: {runs: 3, tokens: 128, warmups: 0, prompt: code}
    busy: wait
    wait_limit_s: 60
    limit_s: 7200.5
    ready_limit_s: 900
    restore: yes
    resume_within_s: 0
    history_nights: 30
    keep_nights: 90
    reports: reports
    prometheus: ~/textfile/eagleops.prom
    notify:
      - {url: {secret: "env:SLACK_URL"}, shape: slack}
      - url: "https://alerts.example.com/x?y=1"
        headers: {X-Box: 7, Authorization: {secret: "file:~/t"}}
    schedule: "Mon..Fri 04:30 Europe/Berlin"
"""


@pytest.fixture
def suite(read):
    """Reads the text of one suite, `default`, and gives it."""

    def suite(text: str) -> SuiteEntry:
        lines = textwrap.indent(textwrap.dedent(text), "    ")
        return read(f"{AROUND}nightly:\n  default:\n{lines}\n").suite()

    return suite


def test_a_whole_suite_becomes_frozen_objects() -> None:
    """Each value of a full suite arrives, typed, its paths relative to hosts.yaml."""
    inventory = parse(AROUND + WHOLE, "etc/hosts.yaml", folder=Path("/etc/lab"))

    assert inventory.nightly["default"] == SuiteEntry(
        name="default",
        origin="etc/hosts.yaml:12",
        hosts=("box", "boxes"),
        profiles=(ProfileCheck(profile="baseline"), ProfileCheck(profile="eagle3", pin="42")),
        commands={
            "smoke": CommandCheck(
                run=("python3", "-c", "print(1)", "8"), stdout="1", severity="warn"
            ),
            "nccl": CommandCheck(
                run=("/opt/nccl-tests/all_reduce_perf", "-g", "8"),
                number="bandwidth *: ([0-9.]+)",
                lowest=40.0,
                highest=1000.0,
                unit="GB/s",
                timeout_s=300.0,
                needs_idle_gpus=False,
            ),
        },
        checks={
            "disk": CheckEntry(limit=20480.0),
            "packages": CheckEntry(severity="off"),
            "xid": CheckEntry(severity="warn"),
            "speed:eagle3": CheckEntry(limit=5.5),
        },
        measure=MeasureEntry(runs=3, tokens=128, warmups=0, prompt="code"),
        busy="wait",
        wait_limit_s=60.0,
        limit_s=7200.5,
        ready_limit_s=900.0,
        restore=True,
        resume_within_s=0.0,
        history_nights=30,
        keep_nights=90,
        reports=Path("/etc/lab/reports"),
        prometheus=Path("~/textfile/eagleops.prom").expanduser(),
        notify=(
            WebhookEntry(url=SecretReference("env:SLACK_URL"), shape="slack"),
            WebhookEntry(
                url="https://alerts.example.com/x?y=1",
                headers={"X-Box": "7", "Authorization": SecretReference("file:~/t")},
            ),
        ),
        schedule="Mon..Fri 04:30 Europe/Berlin",
    )


@pytest.mark.parametrize("nothing", ["", "nightly:\n", "nightly: null\n", "nightly: {}\n"])
def test_no_suite_is_in_order(read, nothing) -> None:
    """A section that stands empty is none, and says what to write once a suite is asked for."""
    inventory = read(AROUND + nothing)

    assert dict(inventory.nightly) == {}
    with pytest.raises(InventoryError, match=r"there is no suite of nightly checks\nWrite one"):
        inventory.suite()


def test_a_suite_may_say_nothing(read) -> None:
    """It has every default, and looks at the default host."""
    inventory = read(AROUND + "nightly: {small: }")
    (found,) = inventory.suite_targets(inventory.suite())

    assert inventory.suite() == SuiteEntry(name="small", origin=inventory.suite().origin)
    assert found.name == "box"


def test_a_suite_is_named_is_the_default_or_the_only_one(read) -> None:
    """As for hosts and profiles; whoever means none of several is told their names."""
    one = read(AROUND + "nightly: {weekly: {}}")
    two = read(AROUND + "nightly: {weekly: {}, default: {}}")
    neither = read(AROUND + "nightly: {weekly: {}, monthly: {}}")

    assert one.suite().name == "weekly"
    assert two.suite().name == "default"
    assert two.suite("weekly").name == "weekly"
    with pytest.raises(InventoryError, match=r"there is no suite weakly\nDid you mean weekly\?"):
        two.suite("weakly")
    with pytest.raises(InventoryError, match=r"Say --suite: weekly, monthly\."):
        neither.suite()


def test_a_suite_s_machines_are_each_one_once(read) -> None:
    """Groups are their members, in the order of the suite."""
    inventory = read(AROUND + "nightly: {default: {hosts: [llm, boxes, box]}}")
    found = inventory.suite_targets(inventory.suite())

    assert [one.name for one in found] == ["llm", "sim", "box"]


@pytest.mark.parametrize(
    ("written", "severity"),
    [
        *((word, "off") for word in ("off", "Off", "OFF", "no", "false", "'off'")),
        *((word, None) for word in ("on", "yes", "True", "'on'", "null")),
        ("warn", "warn"),
        ("'fail'", "fail"),
        ("{severity: off}", "off"),
        ("{severity: on}", None),
        ("{}", None),
    ],
)
def test_a_severity_may_be_spelt_as_yaml_has_it(suite, written, severity) -> None:
    """An unquoted off is a boolean to YAML, and no check must stay on because of that."""
    read = suite(f"checks: {{packages: {written}, command: {written}}}")

    assert read.checks["packages"] == CheckEntry(severity=severity)
    assert read.rule("packages").on is (severity != "off")
    assert read.checks["command"].severity == severity


def test_a_rule_is_the_whole_name_s_then_the_kind_s_then_the_catalogue_s(suite) -> None:
    """Key by key: a limit for one profile leaves the severity that all have."""
    read = suite("""
        profiles: [baseline, eagle3]
        checks: {speed: warn, "speed:eagle3": {limit: 7}, "doctor:port": off, disk: {limit: 1}}
    """)

    assert (read.rule("speed").severity, read.rule("speed").limit) == ("warn", 3)
    assert (read.rule("speed:eagle3").severity, read.rule("speed:eagle3").limit) == ("warn", 7)
    assert read.rule("speed:baseline") == read.rule("speed")
    assert not read.rule("doctor:port").on
    assert read.rule("doctor:ptrace").severity == "fail"
    assert (read.rule("disk").severity, read.rule("disk").limit) == ("warn", 1)
    assert read.rule("pin").limit == KINDS["pin"].limit


@pytest.mark.parametrize("kind", ["warn", "fail", "off"])
def test_what_a_command_says_of_itself_is_its_rule(suite, kind) -> None:
    """Over what `checks` says of all commands, which holds for those that say nothing."""
    read = suite(f"""
        checks: {{command: {kind}}}
        commands:
          warns: {{run: [echo], severity: warn}}
          fails: {{run: [echo], severity: fail}}
          never: {{run: [echo], severity: off}}
          plain: {{run: [echo]}}
    """)

    severities = [read.rule(f"command:{name}").severity for name in read.commands]
    assert severities == ["warn", "fail", "off", kind]
    with pytest.raises(KeyError):
        read.rule("disc")


def test_one_value_alone_is_a_list_of_one(suite) -> None:
    """For hosts and profiles, as elsewhere in the file."""
    read = suite("{hosts: sim, profiles: baseline}")

    assert read.hosts == ("sim",)
    assert read.profiles == (ProfileCheck(profile="baseline"),)


@pytest.mark.parametrize("pin", ["42", "'42'", "0123abcd", "'00000000-0000-4000'", "12345678"])
def test_a_pin_is_a_number_or_the_beginning_of_a_uuid(suite, pin) -> None:
    """As it is written: YAML would make other digits of some."""
    read = suite(f"profiles: [{{profile: baseline, pin: {pin}}}]")

    assert read.profiles[0].pin == pin.strip("'")


def test_what_is_secret_is_in_no_repr() -> None:
    """A webhook's path and the values of headers are keys to somebody's door."""
    hook = WebhookEntry(
        url="https://hooks.example.com/services/T0/B0/hush", headers={"X-Token": "hush"}
    )
    command = CommandCheck(run=("curl", "--token=hush"))

    assert "hush" not in repr(SuiteEntry(name="a", notify=(hook,), commands={"b": command}))
    assert "https://hooks.example.com/..." in repr(hook)


@pytest.mark.parametrize(
    ("kind", "values", "where"),
    [
        (ProfileCheck, {"profile": "a", "pin": "last"}, "pin"),
        (CommandCheck, {"run": ()}, "run"),
        (CommandCheck, {"run": ("a",), "number": "[0-9]+"}, "number"),
        (CommandCheck, {"run": ("a",), "number": "(.)", "lowest": 2.0, "highest": 1.0}, "lowest"),
        (CommandCheck, {"run": ("a",), "timeout_s": float("inf")}, "timeout_s"),
        (MeasureEntry, {"tokens": 1}, "tokens"),
        (MeasureEntry, {"prompt": "poem"}, "prompt"),
        (WebhookEntry, {"url": "ftp://example.com"}, "url"),
        (WebhookEntry, {"url": "https://example.com", "headers": {"A": "b\nc"}}, "headers"),
        (SuiteEntry, {"name": "a", "limit_s": 0.0}, "limit_s"),
        (SuiteEntry, {"name": "a", "schedule": "at night"}, "schedule"),
        (SuiteEntry, {"name": "a", "checks": {"disc": CheckEntry()}}, "checks"),
        (SuiteEntry, {"name": "a", "checks": {"xid": CheckEntry(limit=3)}}, "checks"),
        (SuiteEntry, {"name": "a", "prometheus": Path("a.txt")}, "prometheus"),
    ],
)
def test_python_is_refused_what_the_file_is_refused(kind, values, where) -> None:
    """Who builds a suite without a file meets the same checks, with the field's name."""
    with pytest.raises(InventoryError) as caught:
        kind(**values)

    assert caught.value.where == where


# What PyYAML writes as it stands: no controls, and none of YAML's rarer line breaks.
text = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_categories=["Cc", "Zl", "Zp"])
)
words = text.map(str.strip).filter(lambda word: word and word.isprintable())
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
figures = st.floats(-1e9, 1e9).map(lambda value: round(value, 3))
times = st.floats(0.001, 1e6).map(lambda value: round(value, 3)).filter(bool)
severities = st.sampled_from([None, "warn", "fail", "off"])
references = st.builds(
    lambda kind, place: SecretReference(f"{kind}:{place}"),
    st.sampled_from(["env", "file", "cmd"]),
    words,
)
tokens = st.from_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}", fullmatch=True)
latin = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1)
urls = st.from_regex(
    r"https?://[a-z0-9]{1,8}(\.example\.com)?(:[1-9][0-9]{0,3})?/[!-~]{0,30}", fullmatch=True
)
webhooks = st.builds(
    WebhookEntry,
    url=urls | references,
    shape=st.sampled_from(["json", "slack"]),
    headers=st.dictionaries(tokens, latin | references, max_size=3),
)


@st.composite
def commands(draw) -> CommandCheck:
    """A command whose figure is asked for wherever it is judged."""
    given_number = draw(st.booleans())
    band = sorted([draw(figures), draw(figures)])
    return CommandCheck(
        run=(draw(words.filter(lambda word: word[0] != "~")), *draw(st.lists(text, max_size=3))),
        exit_status=draw(st.integers(0, 255)),
        stdout=draw(st.none() | st.sampled_from(["ok", "^[0-9]+$", r"\bdone\b", "é|ü", "off"])),
        number="([0-9.]+)" if given_number else None,
        lowest=band[0] if given_number and draw(st.booleans()) else None,
        highest=band[1] if given_number and draw(st.booleans()) else None,
        unit=draw(words) if given_number else "",
        timeout_s=draw(times),
        severity=draw(severities),
    )


@st.composite
def check_entries(draw, profiles: tuple[str, ...]) -> dict[str, CheckEntry]:
    """Rules for kinds, and for single checks of those that there are."""
    subjects = {"doctor": DOCTOR}
    wanted = {}
    for kind in draw(st.lists(st.sampled_from(sorted(KINDS)), unique=True, max_size=8)):
        known = profiles if KINDS[kind].of == "profile" else subjects.get(kind, ())
        subject = draw(st.sampled_from(["", *known]))
        highest = 100 if KINDS[kind].unit == "%" else 1e6
        limit = None
        if KINDS[kind].limit is not None:
            limit = draw(st.none() | st.floats(0, highest).map(lambda value: round(value, 3)))
        name = f"{kind}:{subject}" if subject else kind
        wanted[name] = CheckEntry(severity=draw(severities), limit=limit)
    return wanted


@st.composite
def suites(draw) -> SuiteEntry:
    """Any suite that stands in the file above."""
    profiles = draw(st.lists(st.sampled_from(["baseline", "eagle3"]), unique=True))
    pins = st.none() | st.integers(1, 9_999_999).map(str) | st.uuids().map(str)
    return SuiteEntry(
        name=draw(names),
        hosts=tuple(draw(st.lists(st.sampled_from(["box", "sim", "llm", "boxes"]), unique=True))),
        profiles=tuple(ProfileCheck(profile=name, pin=draw(pins)) for name in profiles),
        commands=draw(st.dictionaries(names, commands(), max_size=3)),
        checks=draw(check_entries(tuple(profiles))),
        measure=draw(
            st.builds(
                MeasureEntry,
                runs=st.integers(1, 99),
                tokens=st.integers(2, 9999),
                warmups=st.integers(0, 9),
                prompt=st.sampled_from(prompts.NAMES),
            )
        ),
        busy=draw(st.sampled_from(["skip", "wait", "force"])),
        wait_limit_s=draw(times),
        limit_s=draw(times),
        ready_limit_s=draw(times),
        restore=draw(st.booleans()),
        resume_within_s=draw(times | st.just(0.0)),
        history_nights=draw(st.integers(1, 999)),
        keep_nights=draw(st.integers(1, 9999)),
        reports=draw(st.none() | names.map(lambda name: Path("/srv") / name)),
        prometheus=draw(st.none() | names.map(lambda name: Path(f"/srv/{name}.prom"))),
        notify=tuple(draw(st.lists(webhooks, max_size=2))),
        schedule=draw(st.sampled_from(["*-*-* 04:30:00", "Sat 1:05 UTC", "weekly", "*:0/15"])),
    )


def plain(value: object) -> object:
    """A suite as somebody would write it down: without what is None."""
    if isinstance(value, SecretReference):
        return {"secret": str.__str__(value)}
    if isinstance(value, Path):
        return str(value)
    if attrs.has(type(value)):
        given = attrs.asdict(value, recurse=False)
        return {key: plain(one) for key, one in given.items() if one is not None}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if hasattr(value, "items"):
        return {key: plain(one) for key, one in value.items()}
    return value


def as_yaml(suite: SuiteEntry, *, flow: bool) -> str:
    """The section that holds it."""
    keys = plain(attrs.evolve(suite, origin=""))
    body = {key: value for key, value in keys.items() if key not in {"name", "origin"}}
    if flow:
        line = yaml.safe_dump(
            {suite.name: body},
            default_flow_style=True,
            allow_unicode=True,
            sort_keys=False,
            width=10**6,
        )
        return f"nightly: {line}"
    return yaml.safe_dump({"nightly": {suite.name: body}}, allow_unicode=True, sort_keys=False)


@given(suites(), st.booleans())
def test_any_suite_that_is_written_out_is_read_back(suite, flow) -> None:
    """Whatever it says, in either of YAML's styles, nothing is lost and nothing is added."""
    read = parse(AROUND + as_yaml(suite, flow=flow)).suite()

    assert attrs.evolve(read, origin="") == suite


@given(suites())
def test_the_schema_takes_any_suite(suite) -> None:
    """An editor marks nothing that eagleops takes."""
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    section = yaml.safe_load(as_yaml(suite, flow=False))
    document = {"hosts": {"box": {"transport": "local"}}, **section}

    validator = jsonschema.Draft202012Validator(schema.schema())
    assert [error.message for error in validator.iter_errors(document)] == []


HOOKS = (
    WebhookEntry(url=SecretReference("env:SLACK_URL"), shape="slack"),
    WebhookEntry(url=SecretReference("cmd:pass show hunter2"), shape="slack"),
    WebhookEntry(url="https://alerts.example.com:8443/T0/hunter2"),
    WebhookEntry(url="https://one.example.com/hunter2"),
    WebhookEntry(url="https://one.example.com/hunter3"),
    WebhookEntry(url="https://one.example.com/hunter3", headers={"X-Scope": "hunter4"}),
)


@given(st.permutations(HOOKS), st.integers(1, len(HOOKS)))
def test_a_webhook_keeps_its_name_wherever_it_stands(hooks, count) -> None:
    """What became of a message is kept under it: it must not pass to another by a move."""
    named = SuiteEntry(name="s", notify=tuple(hooks)).webhooks

    assert list(named.values()) == list(hooks)
    assert named == SuiteEntry(name="s", notify=HOOKS).webhooks
    assert {"slack env:SLACK_URL", "slack cmd", "json alerts.example.com:8443"} < set(named)
    assert "hunter" not in " ".join(named)
    some = SuiteEntry(name="s", notify=tuple(hooks[:count])).webhooks
    assert {n: h for n, h in some.items() if "one.example" not in n}.items() <= named.items()


def test_the_same_webhook_twice_is_one() -> None:
    """Nobody wants a message twice."""
    assert list(SuiteEntry(name="s", notify=(HOOKS[0], HOOKS[0])).webhooks.values()) == [HOOKS[0]]
