"""Each rule finds its mistake, and finds nothing where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eagleops.inventory import load, parse, shipped
from eagleops.lint import counted, lint, rules, worst
from eagleops.profile import Profile

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, SOUND, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_is_found_by_its_rule(case: Case) -> None:
    """The finding names the rule, says what is wrong, and where."""
    found = [one for one in lint(case.profile, case.facts) if one.rule == case.rule]

    assert found != []
    assert any(case.hint in f"{one.message} {one.fix}" for one in found), found
    assert all(one.where for one in found)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_a_sound_profile_is_left_alone_by_the_rule(case: Case) -> None:
    """The rule is silent where its mistake is not made."""
    found = [one for one in lint(case.profile, case.facts) if one.rule == case.rule]

    assert found == []


def test_every_rule_is_tried_both_ways() -> None:
    """No rule is without a mistake that it finds and a profile that it leaves alone."""
    assert {case.rule for case in CASES} == set(rules())
    assert {case.rule for case in SOUND} == set(rules())
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", load(shipped()).profile_names())
def test_the_shipped_profiles_have_no_error(name: str) -> None:
    """Nothing is called an error that works."""
    found = lint(load(shipped()).profile(name))

    assert [one for one in found if one.severity == "error"] == []


def test_a_finding_names_file_line_and_key_of_the_profile_that_says_it() -> None:
    """Also where the value is inherited."""
    inventory = parse(
        "hosts: {sim: {transport: sim}}\n"
        "profiles:\n"
        "  nccl:\n"
        "    abstract: true\n"
        "    env:\n"
        "      NCCL_ALGO: Rign\n"
        "  baseline: {extends: nccl, engine: sglang, model: /m, port: 8000}\n",
        "hosts.yaml",
    )

    first = lint(inventory.profile("baseline"))[0]

    assert first.rule == "nccl-word"
    assert first.where == "hosts.yaml:6: profiles.nccl.env.NCCL_ALGO"
    assert first.fix == "Did you mean Ring?"


@pytest.mark.parametrize("value", [" hush", "'hush'", "~hush", "x$hush", "`hush`", "hush <todo>"])
def test_a_finding_about_a_secret_does_not_hold_it(value: str) -> None:
    """Under a secret's name, behind a secret's flag, or in a URL."""
    secrets = {"HF_TOKEN": value, "PROXY": " http://me:hush@example.com"}
    profile = Profile(
        name="p",
        engine="command",
        port=8000,
        env=secrets,
        args={"api-key": value},
        command=("serve", "--api-key", value),
    )
    found = [one for one in lint(profile) if one.rule in {"shell-syntax", "stray-characters"}]

    assert {one.where.rpartition("profiles.p.")[2] for one in found} >= {"env.HF_TOKEN", "command"}
    assert "hush" not in str(found)


def test_a_variable_that_nobody_reads_is_named_under_a_secrets_name() -> None:
    """``$HF_TOKEN`` is a slip, and no secret."""
    found = lint(Profile(name="p", engine="vllm", model="/m", env={"HF_TOKEN": "$HF_TOKEN"}))

    assert "no shell reads it: '$HF_TOKEN' stays as it is" in [one.message for one in found]


def test_findings_come_worst_first() -> None:
    """Errors, then warnings, then notes; and they are counted so."""
    found = lint(load(shipped()).profile("eagle3-2step").with_(env={"NCCL_ALGO": "x"}))
    order = [one.severity for one in found]

    assert order == sorted(order, key=("error", "warning", "note").index)
    assert worst(found) == "error"
    assert counted(found).startswith("1 error, 1 warning, ")
    assert worst(()) is None
    assert counted(()) == "nothing found"
