"""A night's report: its verdict, its exit status, and what is seen of it."""

from __future__ import annotations

import pytest

from eagleops.nights.faults import news
from eagleops.nights.finding import Finding, State
from eagleops.nights.night import Night, Outcome
from eagleops.render.console import _Console
from eagleops.workflows.nightly.report import NightReport


def finding(check: str, state: State = "pass", message: str = "seen", **more: object) -> Finding:
    """A finding on the host that is asked."""
    return Finding(check, "sim", state, message, **more)


def night(*findings: Finding, began: str = "2026-11-30", outcome: Outcome = "done") -> Night:
    """A night with these findings."""
    return Night(
        suite="default",
        uuid=f"{began.replace('-', '')}00000000",
        began_utc=f"{began}T04:30:00Z",
        ended_utc=f"{began}T04:50:00Z",
        outcome=outcome,
        hosts=("sim",),
        findings=findings,
    )


def report(*findings: Finding, before: tuple[Night, ...] = (), **more: Outcome) -> NightReport:
    """The report of a night with these findings."""
    tonight = night(*findings, **more)
    return NightReport(tonight, news((*before, tonight), tonight), before)


@pytest.mark.parametrize(
    ("findings", "outcome", "expected"),
    [
        ([finding("disk"), finding("xid", "warn"), finding("fan", "skip")], "done", 0),
        ([finding("disk", "fail"), finding("reach", "fail")], "done", 1),
        (
            [finding("reach", "fail"), finding("host-key", "fail"), finding("fan", "warn")],
            "done",
            4,
        ),
        ([finding("environment:p", "warn", facts={"cannot_tell": True})], "done", 3),
        ([finding("speed:p", "skip", facts={"cannot_tell": True})], "done", 3),
        ([finding("disk", "fail"), finding("fan", "skip", facts={"cannot_tell": True})], "done", 1),
        ([finding("disk")], "time_limit", 3),
        ([finding("disk", "fail")], "time_limit", 1),
        ([finding("disk", "fail")], "interrupted", 130),
    ],
)
def test_the_exit_status_is_the_worst_that_is_known(
    findings: list[Finding], outcome: Outcome, expected: int
) -> None:
    """A failure is 1, hosts that are away alone 4, a blind witness or too little time 3."""
    told = report(*findings, outcome=outcome)

    assert told.exit_status == expected
    assert told.ok == (expected == 0)
    assert told.to_dict()["exit_status"] == expected


def drawn(told: NightReport) -> list[str]:
    """The report's lines in a terminal of 120 columns."""
    console = _Console(width=120, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(told.view())
    return capture.get().rstrip().splitlines()


def test_faults_come_first_and_the_verdict_last() -> None:
    """A failure stands above a warning, with since when it is there; passes are counted."""
    before = night(finding("fan", "warn"), began="2026-11-28")
    told = report(
        finding("disk"),
        finding("fan", "warn", "fan 0 stands still"),
        finding("speed:p", "fail", "12 % slower"),
        finding("xid", "skip", "no kernel log"),
        before=(before,),
    )
    lines = drawn(told)

    text = "\n".join(lines)
    assert text.index("12 % slower") < text.index("fan 0 stands still")
    assert any("speed:p" in line and "tonight" in line for line in lines)
    assert any("fan " in line and "2026-11-28" in line for line in lines)
    assert "sim: skipped xid: no kernel log" in text
    assert lines[-1] == "default: 1 failed, 1 warned, 1 passed, 1 skipped (1 new)"


def test_what_has_ended_is_told() -> None:
    """With since when it was there, for how many nights, and what it was."""
    before = night(finding("fan", "warn", "fan 0 stands still"), began="2026-11-28")
    lines = drawn(report(finding("fan"), before=(before,)))

    assert any("2026-11-28" in line and "fan 0 stands still" in line for line in lines)
    assert lines[-1] == "default: 1 passed (1 ended)"


def test_a_night_without_news_says_so() -> None:
    """The last line is the whole answer."""
    assert drawn(report(finding("disk")))[-1] == "default: 1 passed, nothing new"


def test_checks_that_were_skipped_for_one_reason_share_a_line() -> None:
    """A reason is told once, however many checks it cost."""
    lines = drawn(report(finding("fan", "skip", "busy"), finding("power", "skip", "busy")))

    assert "sim: skipped fan, power: busy" in lines
