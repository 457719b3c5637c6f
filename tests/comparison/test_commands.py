"""The commands: what they print, their documents, their exit statuses."""

from __future__ import annotations

import pytest

from comparison.examples import SECRET
from main_job.conftest import commands

__all__ = ["commands"]


def test_break_even_asks_no_machine(commands) -> None:
    """The sum alone, from given numbers."""
    told = commands(
        "break-even", "--baseline-tps", "82.2", "--cycle-ms", "30.6", "--accept-length", "1.84"
    )

    assert (told.exit_status, told.stderr) == (0, "")
    assert "so it needs 2.52 accepted tokens a cycle to break even; it has 1.84" in told.stdout


def test_break_even_as_a_document(commands) -> None:
    """One line of JSON with the keys that stay."""
    told = commands("break-even", "--baseline-tps", "82.2", "--cycle-ms", "30.6", "--json")

    document = told.document
    assert (document["command"], document["ok"], document["host"]) == ("break-even", True, None)
    assert round(document["needed_accept_length"], 2) == 2.52
    assert (document["accept_length"], document["pays"]) == (None, None)


def test_break_even_without_numbers_is_a_usage_error(commands) -> None:
    """Exit status 2, and the flag that is missing."""
    told = commands("break-even", "--cycle-ms", "30.6")

    assert told.exit_status == 2
    assert "error: --baseline-tps: the speed without speculation is missing" in told.stderr


@pytest.mark.alone  # the box's clock runs ten times as fast, and a busy machine cannot follow
def test_compare_from_plan_to_report(commands) -> None:
    """The plan touches nothing; the comparison ends in a document and a report."""
    pytest.importorskip("scipy", reason="the [stats] extra is not installed")
    pytest.importorskip("matplotlib", reason="the [plots] extra is not installed")
    commands.write(
        sim="{start_s: 0.2, warmup_s: 0.1, speed: 10}",
        more=("  slower:", "    extends: baseline", "    sim: {tok_s: 60}"),
    )
    asked = ("compare", "--profiles", "baseline,slower", "--restarts", "1", "--runs", "2")

    planned = commands(*asked, "--dry-run", "--json")
    assert planned.document["schedule"] == [
        {"profile": "baseline", "restart": 1},
        {"profile": "slower", "restart": 1},
    ]
    told = commands(*asked, "--tokens", "64", "--warmups", "0", "--report", "r.html", "--json")

    assert told.exit_status == 0, told.stderr
    document = told.document
    assert [one["profile"] for one in document["profiles"]] == ["baseline", "slower"]
    (verdict,) = document["verdict"]
    # One restart of each shows nothing, however far apart they are.
    assert verdict["conclusion"] == "no_difference_shown"
    assert verdict["change_pct"] == pytest.approx(-27, abs=4)
    assert document["report"] == "r.html"
    report = (commands.folder / "r.html").read_text(encoding="utf-8")
    assert "at least 4 of each are needed" in report
    assert "hf_never_shown" not in report
    assert SECRET not in report


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--profiles", "baseline"), "a comparison needs two profiles"),
        (("--profiles", "a,b", "--order", "x"), "--order: expected abba, given or random, got x"),
        (("--profiles", "baseline,nobody"), "there is no profile nobody"),
        (("--profiles", "baseline,baseline"), "baseline is named twice"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(commands, words, message) -> None:
    """Exit status 2, before anything is touched."""
    told = commands("compare", *words)

    assert told.exit_status == 2
    assert message in told.stderr
