"""Commands as people paste them: each imports right, or is refused with the right reason."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from eagleops.engines import engine
from eagleops.errors import UsageError
from eagleops.inventory import parse
from eagleops.lint import rules
from eagleops.pasted import Imported, commented, import_command

FOLDER = Path(__file__).resolve().parents[1] / "data/commands"
CORPUS = yaml.safe_load((FOLDER / "corpus.yaml").read_text(encoding="utf-8"))
TAKEN = [entry for entry in CORPUS if "refused" not in entry]
REFUSED = [entry for entry in CORPUS if "refused" in entry]
ADDED = {"SPT_NOENV", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}


def ids(entries: list[dict]) -> list[str]:
    """The entries' names."""
    return [entry["id"] for entry in entries]


def test_the_corpus_is_large_enough() -> None:
    """Sixty commands and more, each with a name of its own."""
    assert len(CORPUS) >= 60
    assert len(set(ids(CORPUS))) == len(CORPUS)


@pytest.mark.parametrize("entry", TAKEN, ids=ids(TAKEN))
def test_a_command_becomes_the_profile_that_starts_the_same(entry: dict) -> None:
    """The YAML, read back, gives the same argv, the same variables, the same folder."""
    imported = import_command(entry["command"], file="F")

    inventory = parse(imported.yaml)
    profile = inventory.profile(inventory.profile_names()[0])
    adapter = engine(profile.engine)
    if "argv" in entry:
        argv = adapter.command(profile, profile.python or "python3")
        assert list(argv) == shlex.split(entry["argv"])
    if "secret" not in entry:
        env = adapter.environment(profile, nccl_log=False)
        expected = entry.get("env", {})
        assert {k: v for k, v in env.items() if k not in ADDED - set(expected)} == expected
    assert profile.cwd == entry.get("cwd")
    assert imported.target.name == entry.get("on")
    if "on" in entry:
        assert inventory.target(entry["on"]).name == entry["on"]
    # So that `eagleops launch` on the file, with no word more, starts it there.
    assert inventory.profile() == profile
    assert inventory.target().name == entry.get("on", "here")


@pytest.mark.parametrize("entry", TAKEN, ids=ids(TAKEN))
def test_what_is_wrong_in_it_is_told_and_nothing_else(entry: dict) -> None:
    """Of the paste itself; what the linter says of the profile is its own matter."""
    found = import_command(entry["command"], file="F").findings

    told = {one.rule for one in found if one.severity != "note" and one.rule not in rules()}
    assert told == set(entry.get("findings", []))
    assert all(one.where.startswith("F:") for one in found if one.rule not in rules())


@pytest.mark.parametrize("entry", REFUSED, ids=ids(REFUSED))
def test_what_cannot_be_imported_is_refused_with_the_reason(entry: dict) -> None:
    """The error names the kind, the place, and the way out."""
    with pytest.raises(UsageError) as caught:
        import_command(entry["command"], file="F")

    assert f"[{entry['refused']}]" in str(caught.value)
    assert str(caught.value).startswith("F")
    assert caught.value.way_out != "" or entry["refused"] == "ssh"


def everything(imported: Imported) -> str:
    """All that is shown of it, in whatever way."""
    shown = [imported.profile.to_dict(), imported.argv, dict(imported.env)]
    return commented(imported.findings) + imported.yaml + json.dumps(shown) + repr(imported)


@pytest.mark.parametrize("entry", [e for e in CORPUS if "secret" in e], ids=lambda e: e["id"])
def test_a_secret_is_never_written(entry: dict) -> None:
    """It becomes a reference; its value is in no output, and the words about it are whole."""
    imported = import_command(entry["command"], file="F")

    assert entry["secret"] not in everything(imported)
    assert '{secret: "env:' in imported.yaml
    told = [one for one in imported.findings if one.rule == "secret-in-command"]
    assert "<redacted>" not in str(told)


@pytest.mark.parametrize("entry", [e for e in CORPUS if "hidden" in e], ids=lambda e: e["id"])
def test_a_password_of_the_login_goes_nowhere(entry: dict) -> None:
    """It has no part in the profile: nothing refers to it, and nothing shows it."""
    assert entry["hidden"] not in everything(import_command(entry["command"], file="F"))
