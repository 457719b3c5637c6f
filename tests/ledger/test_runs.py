"""Runs are recorded, found again, and never changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from eagleops.errors import NoSuchRun
from eagleops.ledger import Ledger, default_path


def test_a_run_is_found_as_it_was_recorded(ledger: Ledger, make_run) -> None:
    """What is asked for by its number is what was handed in, with its number."""
    run = make_run(launch={"ready_s": 12.5}, lint=None)

    number = ledger.add(run)

    found = ledger.run(number)
    assert found.id == number
    assert found.facts == run.facts
    assert found.header.ready_s == 12.5
    assert found.part("spec")["argv"][-2:] == ["--tp-size", "8"]


def test_runs_are_numbered_from_one(ledger: Ledger, make_run) -> None:
    """A person types a number: the first run is 1, the next one 2."""
    assert [ledger.add(make_run()), ledger.add(make_run())] == [1, 2]


def test_a_run_grows_and_forgets_nothing(ledger: Ledger, make_run) -> None:
    """A later fact of a part holds, and the earlier one stays among the facts."""
    number = ledger.add(make_run(outcome={"outcome": "started"}))

    ledger.update(number, {"outcome": {"outcome": "ready"}, "launch": {"ready_s": 3}})
    ledger.update(number, {"bench": {"tok_s": {"median": 82.2}, "accept_length": 1.84}})
    ledger.update(number, {"outcome": {"outcome": "benched"}})

    run = ledger.run(number)
    outcomes = [fact.body["outcome"] for fact in run.facts if fact.part == "outcome"]
    assert outcomes == ["started", "ready", "benched"]
    assert run.part("outcome") == {"outcome": "benched"}
    header = run.header
    assert (header.outcome, header.ready_s, header.tok_s, header.accept_length) == (
        "benched",
        3.0,
        82.2,
        1.84,
    )
    assert ledger.runs() == (header,)


def test_the_latest_runs_come_first(ledger: Ledger, make_run) -> None:
    """A list is ordered by when a run began, whenever it was written down."""
    for hour in (12, 10, 11):
        ledger.add(make_run(created_utc=f"2026-11-30T{hour}:00:00.000000Z"))

    assert [run.id for run in ledger.runs()] == [1, 3, 2]
    assert [run.id for run in ledger.runs(limit=1)] == [1]
    assert ledger.runs(limit=0) == ()


def test_a_list_can_be_of_one_profile_or_host(ledger: Ledger, make_run) -> None:
    """``runs`` narrows by profile, by host, and by both."""
    for profile, host in (("a", "x"), ("a", "y"), ("b", "x")):
        ledger.add(make_run(profile=profile, host=host))

    assert [run.id for run in ledger.runs(profile="a")] == [2, 1]
    assert [run.id for run in ledger.runs(host="x")] == [3, 1]
    assert [run.id for run in ledger.runs(profile="a", host="x")] == [1]


def test_a_run_is_found_by_the_beginning_of_its_uuid(ledger: Ledger, make_run) -> None:
    """Eight digits of a uuid name a run that another ledger numbers differently."""
    run = make_run()
    ledger.add(make_run())
    ledger.add(run)

    assert ledger.run(run.header.uuid[:8]).id == 2
    assert ledger.run(run.header.uuid).id == 2


@pytest.mark.parametrize("name", [7, "7", "0", "-1", "abc", "ffffffffffffffff", "", "1; DROP"])
def test_a_run_that_is_not_there_is_told(ledger: Ledger, make_run, name: int | str) -> None:
    """The error names the ledger, what was asked for, and the last run that there is."""
    ledger.add(make_run())

    with pytest.raises(NoSuchRun) as raised:
        ledger.run(name)

    assert str(raised.value) == (
        f"{ledger.path}: there is no run {name}; the last one is 1\nList them: eagleops runs."
    )
    assert raised.value.exit_status == 2


def test_nothing_is_recorded_of_a_run_that_is_not_there(ledger: Ledger) -> None:
    """An update of an unknown run is refused, and leaves no fact behind."""
    with pytest.raises(NoSuchRun, match="there is no run 1; the ledger is empty"):
        ledger.update(1, {"bench": {}})

    assert ledger.count() == 0


def test_what_json_lacks_becomes_null(ledger: Ledger, make_run) -> None:
    """A figure that is no number is recorded as not known, never as 0."""
    number = ledger.add(make_run(bench={"tok_s": float("nan"), "samples": [1.0, float("inf")]}))

    assert ledger.run(number).part("bench") == {"tok_s": None, "samples": [1.0, None]}
    assert ledger.run(number).header.tok_s is None


def test_undecodable_bytes_survive(ledger: Ledger, make_run) -> None:
    """An argv that is no UTF-8 comes back byte for byte."""
    argv = ["/bin/x", "caf\udce9"]
    number = ledger.add(make_run(spec={"argv": argv, "env": {}}))

    assert ledger.run(number).part("spec")["argv"] == argv


def test_what_many_runs_share_is_stored_once(ledger: Ledger, make_run) -> None:
    """A thousand packages recorded a hundred times take the room of one."""
    packages = {"distributions": [{"name": f"p{n}", "version": f"{n}.0"} for n in range(1000)]}
    ledger.add(make_run(packages=packages))
    before = ledger.path.stat().st_size

    for _ in range(100):
        ledger.add(make_run(packages=packages))

    assert ledger.run(100).part("packages") == packages
    assert ledger.path.stat().st_size - before < 100_000


def test_the_ledger_stands_where_data_stands(tmp_path: Path, monkeypatch) -> None:
    """$XDG_DATA_HOME if it is absolute, else ~/.local/share."""
    monkeypatch.setenv("HOME", str(tmp_path))

    assert default_path({}) == tmp_path / ".local/share/eagleops/ledger.db"
    assert default_path({"XDG_DATA_HOME": "share"}) == default_path({})
    assert default_path({"XDG_DATA_HOME": "/data"}) == Path("/data/eagleops/ledger.db")


def test_a_new_ledger_is_its_owners_alone(path: Path) -> None:
    """Folders are made on the way, and neither they nor the file are open to others."""
    deep = path.parent / "a" / "b c" / "ledger?#%.db"

    with Ledger.open(deep):
        assert deep.stat().st_mode & 0o777 == 0o600
        assert deep.parent.stat().st_mode & 0o777 == 0o700
