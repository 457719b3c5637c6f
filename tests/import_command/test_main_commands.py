"""The commands of the main job, as they were typed and as a colleague pasted one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eagleops.engines import engine
from eagleops.errors import UsageError
from eagleops.inventory import load, parse, shipped
from eagleops.pasted import Imported, import_command

FOLDER = Path(__file__).resolve().parents[1] / "data/commands"


def imported(name: str) -> Imported:
    """What becomes of one of them."""
    return import_command((FOLDER / name).read_text(encoding="utf-8"), file=name)


def errors(name: str) -> dict[str, str]:
    """What is called an error in it, by kind."""
    return {one.rule: one.message for one in imported(name).findings if one.severity == "error"}


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("baseline.sh", "baseline"),
        ("eagle3-2step.sh", "eagle3-2step"),
        ("eagle3-3step.sh", "eagle3-3step"),
        ("eagle3-2step-as-pasted.sh", "eagle3-2step"),
    ],
)
def test_each_becomes_the_shipped_profile(name: str, profile: str) -> None:
    """The same argv and the same variables, the one with lost line ends included."""
    inventory = parse(imported(name).yaml)
    made = inventory.profile(inventory.profile_names()[0])
    meant = load(shipped()).profile(profile)
    sglang = engine("sglang")

    assert sglang.command(made, "py") == sglang.command(meant, "py")
    assert sglang.environment(made) == sglang.environment(meant)
    assert made.python == "/root/ml-env/bin/python3"
    assert inventory.target("192.0.2.174").address == "root@192.0.2.174"


@pytest.mark.parametrize("name", ["baseline.sh", "eagle3-2step.sh", "eagle3-3step.sh"])
def test_what_works_is_called_no_error(name: str) -> None:
    """The typed commands are sound, and so are the profiles made of them."""
    assert errors(name) == {}


def test_the_stray_backslashes_and_the_lost_and_are_named() -> None:
    """Where each stands, and what a shell makes of it; and nothing else is an error."""
    found = errors("eagle3-2step-as-pasted.sh")
    where = {one.rule: one.where for one in imported("eagle3-2step-as-pasted.sh").findings}

    assert set(found) == {"stray-backslash", "lost-and"}
    assert "' NCCL_BUFFSIZE=16777216', a command to run and no variable" in found["stray-backslash"]
    assert re.search(r"\(18 of them; the others: 1:114, ", found["stray-backslash"])
    assert where["stray-backslash"] == "eagle3-2step-as-pasted.sh:1:71"
    assert found["lost-and"].startswith("`echo` has lost its &&")


def test_the_reset_is_told_the_way_to_the_reset() -> None:
    """It starts nothing: there is a command for what it does."""
    with pytest.raises(UsageError) as caught:
        imported("reset.sh")

    assert str(caught.value) == (
        "reset.sh: it starts no server, it ends processes [no-server]\n"
        "For that there is `eagleops reset-gpus`, which spares what is not stale."
    )
