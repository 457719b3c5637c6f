"""What somebody is told before a timer is installed, and what the timer takes along."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from eagleops.errors import UsageError
from eagleops.workflows import timer
from eagleops.workflows.timer_surroundings import KEPT, Surroundings

SECRETS = """\
hosts: {box: {address: root@192.0.2.6}}
profiles:
  baseline:
    engine: command
    env: {HF_TOKEN: {secret: "env:HF_TOKEN"}, OTHER_KEY: {secret: "file:~/.key"}}
    args: {run: [serve]}
nightly:
  default:
    hosts: [box]
    profiles: [baseline]
    notify:
      - {url: {secret: "env:SLACK_URL"}, shape: slack}
      - {url: "https://hooks.example.com/x", headers: {X-Key: {secret: "cmd:pass show hook"}}}
"""


def planned(inventory, around, here, text: str = "", **changes: object):
    """A plan for the inventory of this text."""
    loaded = inventory(text) if text else inventory()
    return timer.plan(loaded, loaded.suite(), around=around(**changes), here=here)


def test_a_plain_suite_has_nothing_to_note(inventory, around, here) -> None:
    """No secret, no agent, a lingering account: nothing is lacking."""
    assert planned(inventory, around, here).notes == ()


def test_secrets_from_variables_are_named_with_the_file_that_takes_them(
    inventory, around, here
) -> None:
    """A timer has no variables: each is told, and both ways out."""
    plan = planned(inventory, around, here, SECRETS)
    file = around().secrets

    assert plan.notes[:2] == tuple(
        f"{name} is a secret, and a timer has no variables. Write {name}=... in {file} "
        "(chmod 600), or name a file: {secret: file:PATH}."
        for name in ("HF_TOKEN", "SLACK_URL")
    )
    assert f"EnvironmentFile=-{file}" in "".join(plan.files.values())


def test_secrets_that_the_file_has_are_not_missed(inventory, around, here) -> None:
    """What is written there already needs no note; its value is shown nowhere."""
    file = around().secrets
    file.parent.mkdir(parents=True)
    file.write_text("# ours\nHF_TOKEN=hf_VALUE1\nSLACK_URL='https://hooks.example.com/VALUE2'\n")

    plan = planned(inventory, around, here, SECRETS)

    assert not [note for note in plan.notes if "HF_TOKEN" in note or "SLACK_URL" in note]
    assert "VALUE" not in f"{plan}{plan.text}{plan.to_dict()}"


def test_no_value_of_a_secret_reaches_a_unit(inventory, around, here) -> None:
    """Variables that are set here, and are secrets, stay here."""
    environ = {"HF_TOKEN": "hf_VALUE", "SLACK_URL": "https://VALUE", "EAGLEOPS_API_KEY": "VALUE"}

    plan = planned(inventory, around, here, SECRETS, environ=environ)

    assert "VALUE" not in f"{plan}{plan.text}{plan.to_dict()}{around(environ=environ)}"
    assert any(note.startswith("EAGLEOPS_API_KEY is a secret") for note in plan.notes)


def test_secrets_from_files_that_cannot_be_read_are_told(
    inventory, around, here, tmp_path, monkeypatch
) -> None:
    """A file that nobody has written yet is named; one that is there is not missed."""
    monkeypatch.setenv("HOME", str(tmp_path))
    told = "~/.key is to hold a secret, and cannot be read. Write it: you alone may read it."

    before = planned(inventory, around, here, SECRETS).notes
    (tmp_path / ".key").write_text("VALUE")
    after = planned(inventory, around, here, SECRETS).notes

    assert told in before
    assert told not in after


def test_secrets_from_commands_are_told(inventory, around, here) -> None:
    """Nobody answers a password manager at night."""
    *_, note = planned(inventory, around, here, SECRETS).notes

    assert note == (
        "A secret comes from a command (pass show hook), which runs without a terminal and "
        "without anybody to answer it."
    )


def test_cron_has_no_file_of_variables(inventory, around, here) -> None:
    """There only a file of one's own is left."""
    plan = planned(inventory, around, here, SECRETS, systemd=False)

    assert plan.notes[0] == (
        "HF_TOKEN is a secret, and a timer has no variables. "
        "Name a file that you alone may read: {secret: file:PATH}."
    )


def test_variables_that_decide_where_files_lie_are_taken_along(inventory, around, here) -> None:
    """XDG's folders, PATH, certificates and proxies are as they are here; nothing else is."""
    environ = {
        "XDG_DATA_HOME": "/data/my x",
        "XDG_STATE_HOME": "/state",
        "PATH": "/opt/x:/usr/bin",
        "REQUESTS_CA_BUNDLE": "/etc/ca.pem",
        "https_proxy": "http://proxy.example.com:3128",
        "EDITOR": "ed",
        "XDG_CACHE_HOME": "",
        "SSH_CONNECTION": "192.0.2.1",
    }
    text = "".join(planned(inventory, around, here, environ=environ).files.values())

    assert re.findall(r"^Environment=(.*)", text, re.MULTILINE) == [
        f"EAGLEOPS_INVENTORY={around().folder}/hosts.yaml",
        '"XDG_DATA_HOME=/data/my x"',
        "XDG_STATE_HOME=/state",
        "PATH=/opt/x:/usr/bin",
        "REQUESTS_CA_BUNDLE=/etc/ca.pem",
        "https_proxy=http://proxy.example.com:3128",
    ]


def test_a_proxys_password_is_left_out_and_told(inventory, around, here) -> None:
    """A unit may be read by everybody."""
    environ = {"HTTPS_PROXY": "http://me:pw-VALUE@proxy.example.com:3128"}

    plan = planned(inventory, around, here, environ=environ)

    assert "VALUE" not in f"{plan}{plan.text}{plan.to_dict()}"
    assert plan.notes[0].startswith("HTTPS_PROXY holds a password, and is left out. Write HTTPS_")


LOCAL = "hosts: {box: {transport: local}}\n"
INSIDE = f"{LOCAL}containers: {{llm: {{on: box, vmid: 129%s}}}}\n"


@pytest.mark.parametrize(
    ("text", "by_ssh"),
    [
        ("hosts: {box: {address: root@192.0.2.6}}\n", True),
        (LOCAL, False),
        (INSIDE % ", address: root@192.0.2.9", True),
        (INSIDE % "", False),
    ],
    ids=["by ssh", "at hand", "a container by ssh", "a container at hand"],
)
def test_an_agents_keys_are_not_there_at_night(inventory, around, here, text, by_ssh) -> None:
    """Somebody whose keys an agent holds is told so, where a machine is reached by SSH."""
    target = "llm" if "llm" in text else "box"
    suite = f"nightly: {{default: {{hosts: [{target}]}}}}\n"

    plan = planned(inventory, around, here, text + suite, environ={"SSH_AUTH_SOCK": "/tmp/agent.1"})

    assert [note[:31] for note in plan.notes] == ["An ssh-agent holds keys here, a"] * by_ssh


def test_an_account_that_does_not_linger_is_told_how(inventory, around, here) -> None:
    """A person's systemd ends with their last login."""
    plan = planned(inventory, around, here, lingers=False)

    (note,) = plan.notes
    assert note == (
        "The timer stops when ann logs out, unless their systemd lingers: "
        "loginctl enable-linger ann"
    )


def test_roots_timer_is_the_machines(inventory, around, here) -> None:
    """Root's units belong to the machine, with HOME named: systemd sets none there."""
    plan = planned(inventory, around, here, root=True, lingers=False, home=Path("/root"))

    names = [str(path) for path in plan.files]
    assert plan.manager == "system"
    assert plan.notes == ()
    assert names == [
        "/etc/systemd/system/eagleops-nightly-default.service",
        "/etc/systemd/system/eagleops-nightly-default.timer",
    ]
    assert "Environment=HOME=/root" in "".join(plan.files.values())
    assert here.asked == []


def test_a_persons_units_go_where_their_systemd_looks(inventory, around, here, tmp_path) -> None:
    """A shell's XDG_CONFIG_HOME need not be that of the systemd that is to start them."""
    config = {"XDG_CONFIG_HOME": str(tmp_path / "cfg")}
    folders = []
    for looks in (f"/x {tmp_path}/home/.config/systemd/user", f"{tmp_path}/cfg/systemd/user", ""):
        here.answer(stdout=looks)
        plan = planned(inventory, around, here, environ=config)
        folders.append(str(next(iter(plan.files)).parent.relative_to(tmp_path)))

    assert folders == ["home/.config/systemd/user", "cfg/systemd/user", "cfg/systemd/user"]


def test_the_package_is_named_where_it_is_not_installed(inventory, around, here, tmp_path) -> None:
    """A checkout is found at night as by day, before what PYTHONPATH named."""
    plan = planned(
        inventory, around, here, package=tmp_path / "src", environ={"PYTHONPATH": "/other"}
    )

    assert f"Environment=PYTHONPATH={tmp_path}/src:/other" in "".join(plan.files.values())


def test_this_processs_surroundings_are_told_as_they_are() -> None:
    """The interpreter is the venv's own link, paths are absolute, and no value shows in a repr."""
    here = Surroundings.here()

    assert here.interpreter == Path(sys.executable)
    assert here.folder == Path.cwd()
    assert here.root == (os.geteuid() == 0)
    assert "environ" not in repr(here)
    assert set(here.kept()) <= {*KEPT, "HOME"}


def test_units_of_another_inventory_are_told(inventory, around, here) -> None:
    """Two hosts.yaml with a suite of the same name share a timer: the second is told."""
    first = planned(inventory, around, here)
    timer.install(first, here=here)
    other = inventory(name="other/hosts.yaml")

    same = planned(inventory, around, here)
    plan = timer.plan(other, other.suite(), around=around(), here=here)

    service = next(iter(first.files))
    assert same.notes == ()
    assert plan.notes == (f"{service} is there for another hosts.yaml, and is replaced.",)


def test_the_packages_own_inventory_is_told(around, here, monkeypatch, tmp_path) -> None:
    """Somebody in the wrong folder would get nightly checks of the embedded box."""
    from eagleops.inventory import loading

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EAGLEOPS_INVENTORY", raising=False)
    loaded = loading.load()

    plan = timer.plan(loaded, loaded.suite(), around=around(), here=here)

    assert plan.notes[0] == f"No hosts.yaml was named: it is the one of the package, {loaded.file}."


def test_a_lost_night_is_noted(inventory, around, here) -> None:
    """By the schedule's zone, or the machine's."""
    text = (
        "hosts: {box: {address: a@192.0.2.6}}\n"
        "nightly: {default: {hosts: [box], schedule: '02:30%s'}}\n"
    )

    named = planned(inventory, around, here, text % " Europe/Berlin")
    ours = planned(inventory, around, here, text % "", zone="America/New_York")

    notes = [
        plan.notes[0].partition(", and systemd")[0].partition("clocks")[2] for plan in (named, ours)
    ]
    assert notes == [
        " are put forward past 02:30 (Europe/Berlin)",
        " are put forward past 02:30 (America/New_York)",
    ]


def test_crons_zone_is_told_where_it_counts(inventory, around, here) -> None:
    """Not every cron heeds CRON_TZ."""
    text = (
        "hosts: {box: {address: a@192.0.2.6}}\n"
        "nightly: {default: {hosts: [box], schedule: '02:30 Europe/Berlin'}}\n"
    )
    plan = planned(inventory, around, here, text, systemd=False, zone="Asia/Tokyo")

    assert "CRON_TZ=Europe/Berlin\n30 2 * * * " in plan.crontab
    (note,) = plan.notes
    assert note == (
        "CRON_TZ is heeded by cronie (Fedora, RHEL, Arch), and counts for all lines below it. "
        "Debian's and Ubuntu's cron passes over it: there the time is the machine's own "
        "(Asia/Tokyo)."
    )


def test_a_schedule_that_no_crontab_can_say_is_an_error_where_there_is_cron_alone(
    inventory, around, here
) -> None:
    """Before anything is touched, with the way out."""
    text = (
        "hosts: {box: {address: a@192.0.2.6}}\n"
        "nightly: {default: {hosts: [box], schedule: 'Mon *-*-1..7 04:30'}}\n"
    )

    with pytest.raises(UsageError, match="a crontab cannot say") as refused:
        planned(inventory, around, here, text, systemd=False)

    assert "weekdays and days together" in refused.value.way_out
    assert planned(inventory, around, here, text).crontab == ""
