"""The report: one file, nothing beside it, readable by everybody, without secrets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import attrs
import pytest

from comparison.examples import SECRET, example
from eagleops.comparison.trial import Restarts, Trial
from eagleops.comparison.verdict import verdicts
from eagleops.errors import UsageError
from parts.pages import Tags, asked_for, colour_blocks, faint, own_colours, plain

pytest.importorskip("jinja2", reason="the [plots] extra is not installed")
pytest.importorskip("matplotlib", reason="the [plots] extra is not installed")

from eagleops.render.report import page, ready, write


@pytest.fixture(scope="module")
def text() -> str:
    """The report of the synthetic comparison, drawn once."""
    return page(example())


def test_it_is_one_file_that_asks_for_nothing(text) -> None:
    """No script, no style sheet, image or font of elsewhere: it opens without a network."""
    tags = Tags(text)

    assert tags.open == []
    assert {tag for tag, _ in tags.seen} & {"script", "link", "img", "iframe", "object"} == set()
    assert asked_for(text) == []


def test_it_holds_the_verdict_and_what_it_rests_on(text) -> None:
    """The answer, what was left out, the evidence and the commands."""
    words = plain(text)

    assert "eagle3-2step is 27 % slower than baseline (60.0 against 82.2 tok/s" in words
    assert "eagle3-2step, restart 5: throttled in 2 of 3 requests" in words
    assert "SGLang sets max_running_requests to 48 in eagle3-2step" in words
    assert "python3 -m sglang.launch_server" in words
    assert "NCCL_PROTO" in words
    for heading in ("Speed", "Does speculation pay?", "Fairness", "The exact commands"):
        assert f">{heading}</h2>" in text


def test_it_holds_no_secret(text) -> None:
    """Neither the environment's nor the command's, though what was recorded held both."""
    assert SECRET not in text
    assert "&lt;redacted&gt;" in text


def test_what_a_machine_says_is_text_and_not_markup(text) -> None:
    """A GPU's name with angle brackets stays a name."""
    assert "NVIDIA &lt;simulated&gt;" in text
    assert "<simulated>" not in text


def test_every_plot_is_described_in_words(text) -> None:
    """Each SVG is an image with a title and a description, and no id is used twice."""
    tags = Tags(text)
    images = [attributes for tag, attributes in tags.seen if tag == "svg"]
    ids = [attributes["id"] for _, attributes in tags.seen if attributes.get("id")]

    # Speed, change, break-even, accept lengths, and ten restarts over time.
    assert len(images) == 14
    assert len(ids) == len(set(ids))
    for attributes in images:
        assert attributes["role"] == "img"
        assert set((attributes["aria-labelledby"] or "").split()) <= set(ids)
    assert "baseline: mean 82.2 tok/s of restarts 82.0, 82.5, 81.8, 82.4, 82.3" in text
    assert "eagle3-2step: 1 in 40 %, 2 in 45 %, 3 in 15 %" in text


@pytest.mark.parametrize("block", [0, 1, 2])
def test_colours_can_be_told_from_the_paper(text, block) -> None:
    """Light, dark and printed: every text and every series has a contrast of 4.5 to 1."""
    assert faint(colour_blocks(text)[block]) == []


def test_no_stand_in_colour_is_left(text) -> None:
    """Every colour of a plot is one of the page's, or none."""
    assert own_colours(text) == set()


def test_a_comparison_that_came_to_nothing_has_a_report_too(result) -> None:
    """No figure, no telemetry, no ledger: the report says what there is."""
    dead = Trial(profile="eagle3-2step", restart=1, excluded=("died before it was ready",))
    baseline = Restarts("baseline", (Trial(profile="baseline", restart=1, excluded=("x",)),))
    eagle = Restarts("eagle3-2step", (dead,))
    empty = attrs.evolve(
        result, restarts=(baseline, eagle), verdicts=verdicts(baseline, (eagle,)), aborted="it did"
    )

    text = page(empty)

    assert Tags(text).open == []
    assert "Ended early: it did." in text
    assert "died before it was ready" in text


def test_it_is_the_same_for_the_same_result(result, text) -> None:
    """Nothing in it is drawn at random: two reports differ by their time alone."""

    def timeless(written: str) -> str:
        return re.sub(r"written [\d-]+ [\d:]+ UTC", "", written)

    assert timeless(page(result)) == timeless(text)


def test_it_is_written_where_it_was_asked_for(result, tmp_path: Path) -> None:
    """A file; a folder that is not there is told before anything is measured."""
    write(result, tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="the report cannot be written there"):
        ready(tmp_path / "missing" / "report.html")


def test_without_matplotlib_the_way_out_is_named(tmp_path: Path, monkeypatch) -> None:
    """Before hours of measuring that could not be shown."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    with pytest.raises(UsageError) as refused:
        ready(tmp_path / "report.html")

    assert str(refused.value) == (
        "matplotlib is not installed, and a report's plots need it\npip install 'eagleops[plots]'"
    )
