"""Runs travel as lines of JSON, and arrive once."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eagleops.errors import UsageError
from eagleops.ledger import Header, Ledger, Run, journal
from eagleops.ledger.journal import Imported
from eagleops.ledger.run import OUTCOMES, PARTS

texts = st.text(st.characters(exclude_categories=[]), max_size=20)
bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
runs = st.builds(
    Run.begin,
    st.builds(
        Header, host=texts, server=texts, profile=texts, engine=texts, model=st.none() | texts
    ),
    st.dictionaries(st.sampled_from(PARTS), bodies, max_size=4)
    | st.fixed_dictionaries(
        {
            "outcome": st.fixed_dictionaries({"outcome": st.sampled_from(OUTCOMES)}),
            "bench": st.fixed_dictionaries({"tok_s": st.floats(), "accept_length": st.none()}),
        }
    ),
)


@settings(max_examples=60)
@given(st.lists(runs, max_size=4))
def test_an_export_makes_the_same_ledger_elsewhere(tmp_path_factory, several: list[Run]) -> None:
    """Whatever a run holds, export and import keep it; a second import adds nothing."""
    folder = tmp_path_factory.mktemp("journal")
    exported = io.StringIO()
    with Ledger.open(folder / "a.db") as here, Ledger.open(folder / "b.db") as there:
        numbers = [here.add(run) for run in several]

        assert here.export(exported) == len(several)
        assert there.import_(io.StringIO(exported.getvalue())) == Imported(len(several), 0, 0)
        assert there.import_(io.StringIO(exported.getvalue())) == Imported(0, 0, len(several))

        assert [there.run(n) for n in numbers] == [here.run(n) for n in numbers]
        assert there.runs() == here.runs()


def test_what_was_learned_later_is_taken_in_too(tmp_path: Path, make_run) -> None:
    """A run that is known gets the facts that it lacks, and is not there twice."""
    with Ledger.open(tmp_path / "a.db") as here, Ledger.open(tmp_path / "b.db") as there:
        here.add(make_run())
        here.export(tmp_path / "runs.jsonl")
        there.import_(tmp_path / "runs.jsonl")
        here.update(1, {"bench": {"tok_s": 82.2}, "outcome": {"outcome": "benched"}})
        here.export(tmp_path / "runs.jsonl")

        assert there.import_(tmp_path / "runs.jsonl") == Imported(0, 1, 0)
        assert there.runs() == here.runs()
        assert there.runs()[0].tok_s == 82.2


def test_a_number_is_a_ledgers_own(tmp_path: Path, make_run) -> None:
    """An imported run gets the next number here, and keeps its uuid."""
    run = make_run()
    with Ledger.open(tmp_path / "a.db") as here, Ledger.open(tmp_path / "b.db") as there:
        here.add(run)
        there.add(make_run())
        here.export(tmp_path / "runs.jsonl")
        there.import_(tmp_path / "runs.jsonl")

        assert there.run(2).header.uuid == run.header.uuid


def test_an_export_is_lines_of_plain_json(ledger: Ledger, make_run) -> None:
    """Each line can be read by anything that reads JSON."""
    ledger.add(make_run())
    exported = io.StringIO()
    ledger.export(exported)

    (line,) = exported.getvalue().splitlines()
    content = json.loads(line)
    assert content["eagleops_run"] == 1
    assert content["profile"] == "baseline"
    assert [fact["part"] for fact in content["facts"]] == ["spec"]


def good_line(make_run) -> str:
    """A line that import takes."""
    stream = io.StringIO()
    journal.write(stream, [make_run()])
    return stream.getvalue().strip()


def changed(line: str, **changes: object) -> str:
    """A line with other values."""
    return json.dumps({**json.loads(line), **changes})


BAD = {
    "no json": (lambda line: line[:-1], "no run: "),
    "a list": (lambda _: "[]", "no run: not a line of a ledger"),
    "another document": (lambda _: '{"schema": 1}', "no run: not a line of a ledger"),
    "later": (
        lambda line: changed(line, eagleops_run=2),
        "no run: written by a later version of eagleops",
    ),
    "a field": (lambda line: changed(line, colour="red"), "no run: unknown fields: colour"),
    "a type": (lambda line: changed(line, host=7), "no run: host: 7"),
    "a part": (
        lambda line: changed(
            line, facts=[{"part": "mood", "body": 1, "recorded_utc": "", "uuid": "u"}]
        ),
        "no run: unknown part 'mood'",
    ),
    "facts": (lambda line: changed(line, facts=7), "no run: "),
    "a fact": (
        lambda line: changed(line, facts=["x"]),
        "no run: a fact has to have part, body, recorded_utc and uuid",
    ),
    "depth": (lambda _: "[" * 100_000, "no run: "),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_is_named_and_nothing_is_taken_in(ledger: Ledger, make_run, kind: str) -> None:
    """The error says which line, and the good lines before it are not half of an import."""
    good = good_line(make_run)
    spoil, problem = BAD[kind]

    with pytest.raises(UsageError) as raised:
        ledger.import_(io.StringIO(f"{good}\n\n{spoil(good)}\n"))

    assert str(raised.value).startswith(f"standard input:3: {problem}")
    assert raised.value.way_out == (
        "Nothing was taken in. Each line has to be one that `export` wrote."
    )
    assert ledger.count() == 0


def test_a_file_that_cannot_be_read_or_written_is_told(ledger: Ledger, tmp_path: Path) -> None:
    """A missing file and a missing folder are usage errors with the path in them."""
    with pytest.raises(UsageError) as unread:
        ledger.import_(tmp_path / "none.jsonl")
    with pytest.raises(UsageError) as unwritten:
        ledger.export(tmp_path / "none" / "runs.jsonl")

    assert str(unread.value) == (
        f"{tmp_path}/none.jsonl: the runs cannot be read: No such file or directory"
    )
    assert str(unwritten.value) == (
        f"{tmp_path}/none/runs.jsonl: the runs cannot be written: No such file or directory"
    )


def test_an_export_appears_when_it_is_whole(ledger: Ledger, make_run, tmp_path: Path) -> None:
    """The file is private, and no partial one is left beside it."""
    ledger.add(make_run())
    target = tmp_path / "out" / "runs.jsonl"
    target.parent.mkdir()

    ledger.export(target)

    assert [file.name for file in target.parent.iterdir()] == ["runs.jsonl"]
    assert target.stat().st_mode & 0o777 == 0o600
