"""What `hosts` tells of an inventory, as a document and as tables."""

from __future__ import annotations

from eagleops.inventory import parse
from eagleops.workflows.listing import listing

TEXT = """
defaults: {host: pve}
hosts: {pve: {address: root@192.0.2.6}, sim: {transport: sim}}
groups: {boxes: [pve, sim]}
profiles: {baseline: {engine: sglang, model: m, port: 8000}}
"""
SUITES = """
nightly:
  default:
    hosts: boxes
    profiles: [{profile: baseline, pin: 42}]
    commands: {smoke: {run: [nvidia-smi, -L]}}
    busy: wait
    schedule: "04:30 Europe/Berlin"
    notify: [{url: "https://hooks.example.com/hush", headers: {Authorization: hush}}]
  weekly: {schedule: weekly}
"""


def test_suites_are_listed_with_their_machines_and_profiles() -> None:
    """Groups are the machines in them; a suite without hosts means the default one."""
    default, weekly = listing(parse(TEXT + SUITES)).to_dict()["suites"]

    assert default == {
        "name": "default",
        "hosts": ["pve", "sim"],
        "profiles": [{"profile": "baseline", "pin": "42"}],
        "commands": ["smoke"],
        "busy": "wait",
        "restore": False,
        "limit_s": 14400.0,
        "schedule": "04:30 Europe/Berlin",
    }
    assert (weekly["hosts"], weekly["profiles"], weekly["schedule"]) == (["pve"], [], "weekly")


def test_suites_are_a_table_of_their_own() -> None:
    """With the one marked that is meant where none is named; none without suites."""
    tables = listing(parse(TEXT + SUITES)).view().tables
    titles = [table.title for table in listing(parse(TEXT)).view().tables]

    assert tables[-1].title == "Nightly checks"
    assert tables[-1].rows == (
        ("default *", "boxes", "baseline", "smoke", "04:30 Europe/Berlin"),
        ("weekly", "pve", "", "", "weekly"),
    )
    assert titles == ["Machines", "Profiles", "Groups"]


def test_no_webhook_is_listed() -> None:
    """A webhook's URL is a key to somebody's door."""
    found = listing(parse(TEXT + SUITES))

    assert "hush" not in str(found.to_dict())
    assert "hush" not in found.view().to_html()
    assert "hush" not in repr(found)
