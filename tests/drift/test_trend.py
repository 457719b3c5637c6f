"""The trend of a ledger: what it reads, what it says, and what it says there is to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import eagleops
from drift.nights import run_of
from eagleops.errors import NoSuchRun, UsageError
from eagleops.inventory import HostEntry
from eagleops.ledger import Ledger
from eagleops.library import Host
from eagleops.machine import Machine
from eagleops.transport.local import LocalTransport
from eagleops.workflows.trend import TrendReport, trend
from parts.histories import History

PATCH = {
    "path": "sglang/srt/layers/moe.py",
    "state": "changed",
    "sha256": "ab" * 32,
    "bytes": 8123,
}
HOT = {"gpus": [{"index": 3, "throttled": {"hw_thermal_slowdown": 0.4}}]}


def packages(*modified: dict[str, Any], torch: str = "2.9.1") -> dict[str, Any]:
    """The part of that name."""
    compared = {"name": "sglang", "checked": True, "problem": None, "modified": list(modified)}
    distributions = [{"name": "torch", "version": torch}]
    return {"python": {"version": "3.12.3"}, "distributions": distributions, "compared": [compared]}


def fill(ledger: Ledger, history: History, seed: int = 3) -> None:
    """Nights of the issue: a patch from night 31 on, heat on night 12, another file on night 40."""
    for night, figure in history.make(seed):
        hot = night == 12
        modified = [PATCH] if night >= 31 else []
        more: dict[str, Any] = {"packages": packages(*modified)}
        if hot:
            more |= {"telemetry": HOT, "bench": {"throttled_runs": 3}}
        if night == 31:
            more["machine"] = {"hostname": "box", "kernel": "6.8.12-odd"}
        else:
            more["machine"] = {"hostname": "box", "kernel": "6.8.12"}
        ledger.add(run_of(night, figure * (0.8 if hot else 1), **more))


@pytest.fixture
def sixty(ledger: Ledger) -> TrendReport:
    """The sixty nights of the issue."""
    fill(ledger, History(steps=((31, -7),), odd=((44, -15),), missing=(20,)))
    return trend(ledger.path, "baseline", "box", pin=5)


def drawn(report: TrendReport, width: int = 80) -> str:
    """The report as a terminal shows it."""
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(report.view())
    return captured.get()


def test_the_change_is_told_with_what_else_changed(sixty: TrendReport) -> None:
    """Dated to night 31, and the patched file comes first; a kernel of one night comes last."""
    assert sixty.drift.state == "changed"
    assert sixty.exit_status == 1
    (story,) = sixty.stories
    assert story.change is sixty.drift.since
    assert story.change.after.at_utc.startswith("2026-10-31")
    assert (story.diff.before.id, story.diff.after.id) == (29, 30)
    first, last = story.causes
    assert first.what == "sglang: sglang/srt/layers/moe.py"
    assert (last.what, story.lasting) == ("kernel", 1)
    assert sixty.story(story.change) is story


def test_what_was_left_out_is_shown_with_the_reason(sixty: TrendReport) -> None:
    """Night 12 is no point of a level; a reader sees that it was measured and why not."""
    (night,) = [point for point in sixty.series.points if point.excluded]

    assert night.at_utc.startswith("2026-10-12")
    assert "GPU 3 throttled (HW thermal slowdown) for 40" in drawn(sixty)


def test_it_is_drawn_within_eighty_columns(sixty: TrendReport) -> None:
    """A spark line with its marks, the change, the causes, the latest runs, the verdict."""
    text = drawn(sixty)

    assert max(map(len, text.splitlines())) <= 80
    (line,) = [line for line in text.splitlines() if "█" in line and "▁" in line]
    assert line.strip().index("│") == 29
    assert line.strip()[11] == "·"
    for told in ("Changes of level", "What else changed then (2026-10-31)", "Latest runs", "worse"):
        assert told in text
    assert "run 5, which is pinned" in text
    assert " ".join(text.split()).endswith("it changed on 2026-10-31.")
    assert "What else changed then" in sixty._repr_html_()


def test_the_document_is_whole_json(sixty: TrendReport) -> None:
    """Every number is finite and every text is a text."""
    document = json.loads(json.dumps(sixty.to_dict(), allow_nan=False))

    assert (document["ok"], document["host"], document["profile"]) == (False, "box", "baseline")
    assert len(document["points"]) == 59
    assert document["drift"]["state"] == "changed"
    assert document["stories"][0]["causes"][0]["section"] == "patches"
    assert document["pin"]["ok"] is False
    assert document["better"] == "higher"


def test_a_name_that_was_reused_for_another_profile_is_told_by_its_arguments(
    ledger: Ledger,
) -> None:
    """The change comes with the flag that came with it."""
    for night, figure in History(steps=((31, -7),)).make(5):
        flags = ["--tp-size", "8" if night < 31 else "4"]
        argv = ["/env/bin/python3", "-m", "sglang.launch_server", *flags]
        ledger.add(run_of(night, figure, spec={"argv": argv, "env": {}, "cwd": "/"}))

    (story,) = trend(ledger.path, "baseline", "box").stories
    (cause,) = story.causes
    assert (cause.section, cause.what, cause.before, cause.after) == ("args", "--tp-size", "8", "4")


def test_a_change_without_a_recorded_cause_says_so(ledger: Ledger) -> None:
    """Nothing that is recorded is an answer, too."""
    for night, figure in History(steps=((31, -7),)).make(5):
        ledger.add(run_of(night, figure))

    report = trend(ledger.path, "baseline", "box")
    assert [story.causes for story in report.stories] == [()]
    assert "nothing that is recorded" in drawn(report)


def test_the_diff_reaches_over_all_nights_in_which_it_may_have_changed(ledger: Ledger) -> None:
    """A night between both levels may be the first of the new one: its cause came before it."""
    for night in range(1, 41):
        figure = 88.8 if night < 21 else 85.7 if night == 21 else 82.6
        figure *= 1 if night == 21 else 1 + 0.005 * (-1) ** night
        modified = [PATCH] if night >= 21 else []
        ledger.add(run_of(night, figure, packages=packages(*modified)))

    (story,) = trend(ledger.path, "baseline", "box").stories
    assert (story.diff.before.id, story.diff.after.id) == (20, 22)
    assert [cause.section for cause in story.causes] == ["patches"]


def test_a_pin_in_the_new_level_accepts_it(ledger: Ledger) -> None:
    """Whoever pins a run of after the change says that this is the level now."""
    fill(ledger, History(steps=((31, -7),)))

    assert not trend(ledger.path, "baseline", "box").ok
    accepted = trend(ledger.path, "baseline", "box", pin=45)
    assert accepted.ok
    assert accepted.drift.accepted == accepted.drift.level
    assert [change.worse for change in accepted.drift.changes] == [True]


def test_a_run_of_elsewhere_can_be_pinned_and_is_named_as_such(ledger: Ledger) -> None:
    """It sets the limit; what level is accepted is the profile's own affair."""
    fill(ledger, History(steps=((31, -7),)))
    other = run_of(60, 70.0)
    run = ledger.add(type(other).begin(_named(other, profile="other"), {"bench": _bench(70.0)}))

    report = trend(ledger.path, "baseline", "box", pin=run)
    assert report.pin is not None
    assert report.pin.ok
    assert not report.ok
    assert report.notices == (f"Run {run}, which is pinned, is of other on box.",)


def _named(run: Any, **names: str) -> Any:
    import attrs

    return attrs.evolve(run.header, **names)


def _bench(tok_s: float) -> dict[str, Any]:
    return {"tok_s": {"median": tok_s}}


def test_one_run_is_shown_and_not_judged(ledger: Ledger) -> None:
    """The line, the run, and that it is too few."""
    ledger.add(run_of(1))
    report = trend(ledger.path, "baseline", "box")

    assert report.ok
    assert report.drift.state == "too_short"
    words = " ".join(drawn(report).split())
    assert "baseline on box: decode speed, one run since 2026-10-01" in words
    assert "one run counts, too few" in words


def test_only_the_latest_are_looked_at(ledger: Ledger) -> None:
    """A limit of runs that have the figure: launches that were never measured do not use it up."""
    for night in range(1, 31):
        ledger.add(run_of(night, None))
        ledger.add(run_of(night, 80.0 + night))

    report = trend(ledger.path, "baseline", "box", limit=7)
    assert [point.value for point in report.series.points] == [80.0 + n for n in range(24, 31)]


def test_where_nothing_was_measured_the_error_says_what_was(ledger: Ledger) -> None:
    """Before anything else: an empty ledger, another profile, a figure that it does not have."""
    with pytest.raises(UsageError, match=r"no run of baseline on box has the figure tok_s") as none:
        trend(ledger.path, "baseline", "box")
    assert none.value.way_out == (
        "Measure it: eagleops launch --profile baseline --host box, eagleops bench."
    )
    ledger.add(run_of(1, bench={"accept_length": None}))
    with pytest.raises(UsageError, match="no run of other on box") as other:
        trend(ledger.path, "other", "box")
    assert other.value.way_out.startswith("These have runs: baseline on box. Measure it:")
    with pytest.raises(UsageError, match="accept_length") as plain:
        trend(ledger.path, "baseline", "box", metric="accept_length")
    assert "only a server that speculates" in plain.value.way_out


@pytest.mark.parametrize(
    ("profile", "host", "meant"),
    [("basline", "box", "baseline"), ("baseline", "bx", "box"), ("Baseline", "sim", "baseline")],
)
def test_a_name_that_is_nearly_one_is_asked_for(
    ledger: Ledger, profile: str, host: str, meant: str
) -> None:
    """Whoever mistyped a profile or a host is not sent to launch it, measured or only written."""
    with pytest.raises(UsageError) as nothing:
        trend(ledger.path, profile, host, profiles=("baseline",), hosts=("box", "sim"))
    assert nothing.value.way_out == f"Did you mean {meant}?"
    ledger.add(run_of(1))
    with pytest.raises(UsageError) as other:
        trend(ledger.path, profile, host)
    assert other.value.way_out == f"Did you mean {meant}? These have runs: baseline on box."


def test_a_profile_that_is_like_a_measured_one_is_not_taken_for_it(ledger: Ledger) -> None:
    """hosts.yaml has it: it was not mistyped, and only has to be measured."""
    ledger.add(run_of(1))

    with pytest.raises(UsageError) as nothing:
        trend(ledger.path, "baseline-2", "box", profiles=("baseline", "baseline-2"))
    assert nothing.value.way_out.startswith("These have runs: baseline on box. Measure it:")


def test_the_command_asks_who_mistyped_a_name_and_refuses_a_group(tmp_path: Path) -> None:
    """By what hosts.yaml has, though nothing was ever measured: status 2."""
    tmp_path.joinpath("hosts.yaml").write_text(
        "ledger: ledger.db\n"
        "hosts: {box: {transport: local}, sim: {transport: sim}}\n"
        "groups: {boxes: [box, sim]}\n"
        "profiles: {baseline: {engine: sglang, model: /m, port: 8000}}\n"
    )
    program = [sys.executable, "-m", "eagleops", "trend", "--profile"]
    environment = {**os.environ, "PYTHONPATH": str(Path(eagleops.__file__).parents[1])}

    def told(profile: str, host: str) -> tuple[int, str]:
        argv = [*program, profile, "--host", host, "--inventory", str(tmp_path / "hosts.yaml")]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    status, words = told("basline", "box")
    assert (status, words.splitlines()[-1]) == (2, "Did you mean baseline?")
    status, words = told("baseline", "boxes")
    assert (status, words.splitlines()[-1]) == (2, "Name one of box, sim.")


def test_a_pin_that_is_none_is_an_error(ledger: Ledger) -> None:
    """No such run, and a run that was never measured."""
    ledger.add(run_of(1))
    ledger.add(run_of(2, None))

    with pytest.raises(NoSuchRun):
        trend(ledger.path, "baseline", "box", pin=99)
    with pytest.raises(UsageError, match="run 2 is pinned, and has no figure tok_s"):
        trend(ledger.path, "baseline", "box", pin=2)


@pytest.mark.parametrize("limits", [{"limit": 0}, {"smallest_pct": 0}, {"metric": "speed"}])
def test_what_can_tell_no_trend_is_refused(ledger: Ledger, limits: dict[str, Any]) -> None:
    """Before the ledger is read."""
    ledger.add(run_of(1))

    with pytest.raises(UsageError):
        trend(ledger.path, "baseline", "box", **limits)


def test_a_host_follows_its_own_runs(ledger: Ledger) -> None:
    """``Host.trend`` asks no machine: its transport could not even start."""
    fill(ledger, History(steps=((31, -7),)))
    machine = Machine("box", HostEntry(name="box"), LocalTransport(where="box"))

    report = Host(machine, ledger.path).trend("baseline", metric="ready_s")
    assert report.drift.state == "steady"
    assert report.metric.name == "ready_s"


@pytest.mark.parametrize(
    ("flags", "status"),
    [((), 1), (("--pin", "45"), 0), (("--metric", "ready_s"), 0), (("--metric", "x"), 2)],
)
def test_the_command_s_exit_status_is_its_verdict(
    ledger: Ledger, tmp_path: Path, capsys: Any, flags: tuple[str, ...], status: int
) -> None:
    """1 if it is worse now, 0 if not or if it was accepted, 2 for what is no question."""
    from eagleops.tasks import namespace
    from eagleops.tasks.program import EagleProgram

    fill(ledger, History(steps=((31, -7),)))
    inventory = tmp_path / "hosts.yaml"
    inventory.write_text(
        f"ledger: {ledger.path}\n"
        "defaults: {host: box, profile: baseline}\n"
        "hosts: {box: {transport: local}}\n"
        "profiles: {baseline: {engine: command, args: {run: [sleep]}}}\n"
    )
    program = EagleProgram(name="eagleops", namespace=namespace)

    ended = 0
    try:
        program.run(["eagleops", "trend", "--json", "--inventory", str(inventory), *flags])
    except SystemExit as end:
        ended = int(end.code or 0)

    assert ended == status
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "trend"
    assert document["ok"] == (status == 0)


def test_a_run_can_be_read_in_part(ledger: Ledger) -> None:
    """What is long in it stays where it is: parts that were not asked for are not there."""
    number = ledger.add(run_of(1, telemetry=HOT))
    some = ledger.run(number, ("bench", "launch"))

    assert [fact.part for fact in some.facts] == ["launch", "bench"]
    assert some.header == ledger.run(number).header
    assert ledger.run(number, ()).facts == ()
