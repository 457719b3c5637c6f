"""A night on the embedded box: what is found, kept and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eagleops.errors import UsageError
from eagleops.ledger import Ledger
from eagleops.ledger.diff import diff
from eagleops.library import load
from eagleops.nights.store import NightStore
from nightly.boxes import SECRET, Boxes, at, found, states


def test_a_sound_night_passes_and_is_kept_with_its_reports(boxes: Boxes) -> None:
    """Every check of the suite is made, nothing runs afterwards, and three files are there."""
    report = boxes.night()

    assert (report.exit_status, report.changed) == (0, False)
    seen = states(report)
    expected = {"reach", "xid", "stale", "idle-memory", "disk", "driver", "packages", "machine"}
    expected |= {"nccl-conf", "busy", "launch:baseline", "environment:baseline"}
    expected |= {"throttling:baseline", "speed:baseline"}
    assert expected <= set(seen)
    assert {check: state for check, state in seen.items() if state in {"warn", "fail"}} == {}
    assert "first night" in found(report, "driver").message
    assert boxes.servers() == {}
    assert set(report.reports) == {"html", "junit", "json"}
    kept = json.loads(Path(report.reports["json"]).read_text())
    assert kept["checks"] == report.to_dict()["checks"]
    (night,) = NightStore.beside(boxes.folder / "ledger.db").history("default")
    assert (night.outcome, night.journal) == ("done", {})
    assert night.findings == report.findings
    with Ledger.open(boxes.folder / "ledger.db") as ledger:
        (run,) = ledger.runs()
    assert run.tok_s == pytest.approx(found(report, "speed:baseline").value, abs=0.01)
    assert found(report, "speed:baseline").run_id == run.id


def test_no_secret_reaches_a_night_or_a_report(boxes: Boxes) -> None:
    """The token of a profile's environment stands in no file that a night writes."""
    boxes.night()

    written = [path for path in boxes.folder.joinpath("nights").rglob("*") if path.is_file()]
    assert len(written) >= 7  # a night, its lock, three reports under two names each
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


def test_what_a_command_says_of_a_webhook_is_not_kept(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its URL, nor its path alone, nor a header's token: not in a night, nor a report."""
    path = "T0000/B0000/abcdefghijklmnopqrst"
    monkeypatch.setenv("HOOK_OF_A_COMMAND", f"http://127.0.0.1:9/services/{path}")
    monkeypatch.setenv("TOKEN_OF_A_COMMAND", "Bearer tok-0123456789")
    said = f"POST /services/{path} by tok-0123456789: refused"
    boxes.night(
        f"commands: {{leak: {{run: [sh, -c, 'echo {said}; exit 1']}}}}, "
        "notify: [{url: {secret: 'env:HOOK_OF_A_COMMAND'}, "
        "headers: {X-Scope: {secret: 'env:TOKEN_OF_A_COMMAND'}}}]"
    )

    written = [path for path in boxes.folder.joinpath("nights").rglob("*") if path.is_file()]
    leaks = (path.encode(), path[-20:].encode(), b"tok-0123456789")
    assert [p for p in written if any(leak in p.read_bytes() for leak in leaks)] == []
    assert any(b"refused" in p.read_bytes() for p in written)


def test_a_second_night_says_what_has_changed_on_the_machine(boxes: Boxes) -> None:
    """ECC that was switched off is told in the night that sees it first, and in no other."""
    suite = "checks: {ecc: off, ecc-corrected: off}"
    first = boxes.night(suite)
    boxes.box().break_gpu(0, ecc=False)
    second = boxes.night(suite)
    third = boxes.night(suite)

    assert found(first, "machine").message.startswith("first night")
    assert found(second, "machine").state == "warn"
    assert found(second, "machine").message == "GPU 0: ecc: Enabled → Disabled"
    assert [fault.check for fault in second.news.events] == ["machine"]
    assert found(third, "machine").state == "pass"
    assert not third.changed


def test_an_nccl_conf_that_somebody_edited_is_told_and_named_as_the_cause(
    boxes: Boxes, tmp_path: Path
) -> None:
    """Also one that a profile names; it stands in no environment until NCCL has read it."""
    conf = tmp_path / "nccl of mine.conf"
    conf.write_text("# of mine\nNCCL_ALGO=Ring\n")
    env = f"NCCL_CONF_FILE: '{conf}'"
    first = boxes.night(env=env)
    conf.write_text(f"NCCL_ALGO=Tree\nMY_TOKEN={SECRET}\n")
    second, third = boxes.night(env=env), boxes.night(env=env)

    assert [states(one)["nccl-conf"] for one in (first, second, third)] == ["pass", "warn", "pass"]
    told = found(second, "nccl-conf").message
    assert told.startswith(f"{conf}: NCCL_ALGO=Ring → NCCL_ALGO=Tree, MY_TOKEN=")
    assert SECRET not in json.dumps(second.to_dict())
    assert [fault.check for fault in second.news.events] == ["nccl-conf"]
    with Ledger.open(boxes.folder / "ledger.db") as ledger:
        before, after = (ledger.run(found(one, "speed:baseline").run_id) for one in (first, second))
    changes = diff(before, after).changes
    assert [(change.what, change.before, change.after) for change in changes] == [
        (f"NCCL_ALGO in {conf}", "Ring", "Tree")
    ]


def test_a_night_of_a_clock_that_was_wrong_is_no_last_night(boxes: Boxes) -> None:
    """What changed since is told once, not against that night for years."""
    suite = "profiles: []"
    boxes.open(suite).nightly().run(now=lambda: "2099-01-01T00:00:00Z")
    boxes.night(suite)
    boxes.box().break_gpu(0, ecc=False)

    seen = [[fault.check for fault in boxes.night(suite).news.events] for _ in range(3)]

    assert seen == [["machine"], [], []]


def test_a_short_history_is_of_nights_that_were_before(boxes: Boxes) -> None:
    """A night of a clock that was ahead takes no night's place in the reports."""
    suite = "profiles: [], history_nights: 1"
    boxes.open(suite).nightly().run(now=lambda: "2099-01-01T00:00:00Z")
    first = boxes.night(suite)

    second = boxes.night(suite)

    assert first.history == ()
    assert [night.uuid for night in second.history] == [first.night.uuid]


def test_a_profile_that_fails_costs_the_next_one_nothing(boxes: Boxes) -> None:
    """The first server dies: that is told with its cause, and the second is measured."""
    report = boxes.night("profiles: [baseline, second]", sim="fail: oom")

    assert found(report, "launch:baseline").state == "fail"
    assert "out of memory" in found(report, "launch:baseline").message
    assert "speed:baseline" not in states(report)
    assert found(report, "speed:second").state == "pass"
    assert report.exit_status == 1
    assert boxes.servers() == {}


def test_a_pin_of_another_profile_s_run_is_told_as_such(boxes: Boxes) -> None:
    """It is held against it, and a number that was mistyped shows."""
    library = boxes.open()
    server = library.host("sim").launch(library.profile("second"), verify=False)
    server.bench(runs=1, tokens=48, warmups=0)
    server.stop(grace_s=0.1)

    run_id = server.report.run_id
    report = boxes.night(f"profiles: [{{profile: baseline, pin: {run_id}}}]")

    assert report.night.finding("sim", "pin:baseline") is not None
    assert f"Run {run_id}, which is pinned, is of second on sim." in report.notice


def test_a_ledger_that_is_damaged_meanwhile_is_told(boxes: Boxes) -> None:
    """It is set aside, with the profile's history in it: somebody must know by the morning."""
    ledger = boxes.folder / "ledger.db"

    report = boxes.open().nightly().run(progress=at("bench", lambda: ledger.write_bytes(b"no")))

    assert "ledger.db.damaged-" in report.notice
    assert found(report, "speed:baseline").state == "pass"


def test_a_server_that_dies_under_its_requests_is_told_so(boxes: Boxes) -> None:
    """It was ready, and could not be measured."""
    report = boxes.night(sim="fail: serve")

    assert found(report, "launch:baseline").state == "pass"
    assert found(report, "speed:baseline").state == "fail"
    assert "could not be measured" in found(report, "speed:baseline").message


def test_a_throttled_measurement_fails_as_such_and_says_nothing_of_the_software(
    boxes: Boxes,
) -> None:
    """`throttling` fails and names the GPU; `speed` is skipped, with the figure."""
    boxes.box().break_gpu(0, throttle_reasons=["hw_thermal_slowdown"], speed=0.5)

    report = boxes.night()

    assert found(report, "throttling:baseline").state == "fail"
    assert "GPU 0" in found(report, "throttling:baseline").message
    speed = found(report, "speed:baseline")
    assert speed.state == "skip"
    assert "does not count" in speed.message
    assert speed.value > 0


def test_a_command_is_held_to_what_is_expected_of_it(boxes: Boxes) -> None:
    """Its output, its figure and its status are judged, each with what was seen."""
    suite = """commands: {
      well: {run: [echo, bandwidth 44.5], number: 'bandwidth ([0-9.]+)', lowest: 40, unit: GB/s},
      slow: {run: [echo, bandwidth 33], number: 'bandwidth ([0-9.]+)', lowest: 40, unit: GB/s},
      silent: {run: [echo, nothing], stdout: ok},
      ends: {run: [sh, -c, 'echo it broke >&2; exit 3'], severity: warn},
      hangs: {run: [sleep, '60'], timeout_s: 0.5},
      gone: {run: [no-such-program]},
      never: {run: [touch, never], severity: off}}"""
    report = boxes.night(" ".join(suite.split()))

    assert found(report, "command:well").state == "pass"
    assert (found(report, "command:well").value, found(report, "command:well").limit) == (44.5, 40)
    assert found(report, "command:slow").message.startswith("33 GB/s is below 40")
    assert "does not hold 'ok'" in found(report, "command:silent").message
    assert found(report, "command:ends").state == "warn"
    assert "status 3, expected 0. It said: it broke" in found(report, "command:ends").message
    assert found(report, "command:hangs").state == "fail"
    assert found(report, "command:gone").state == "fail"
    assert "command:never" not in states(report)


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("health", {"gpus": [{}], "time_utc": "2026-11-30T04:30:00Z"}),
        ("health", "well"),
        ("packages", ["torch"]),
        ("nccl_conf", {"/etc/nccl.conf": 7}),
    ],
)
def test_facts_of_another_shape_cost_no_check(boxes: Boxes, name: str, odd: object) -> None:
    """As another version kept them, or a person: they are passed over, told of, and replaced."""
    library = boxes.open("checks: {doctor: off}")
    sound = library.nightly().run()
    (file,) = boxes.folder.glob("nights/default/*.json")
    night = json.loads(file.read_text())
    night["facts"]["sim"][name] = odd
    file.write_text(json.dumps(night))

    after = library.nightly().run()
    last = library.nightly().run()

    assert states(after) == states(sound)
    assert f"kept of its {name} cannot be read, and is passed over" in after.notice
    assert (states(last), last.notice) == (states(sound), "")


def test_an_expression_that_never_ends_costs_its_own_check_alone(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the other commands nor the night's end wait for it; nothing is known of its own."""
    monkeypatch.setattr("eagleops.workflows.nightly.patterns.LIMIT_S", 0.5)
    says = f"run: [echo, {'a' * 60}b]"
    suite = f"""commands: {{
      output: {{{says}, stdout: '^(a+)+$'}},
      figure: {{{says}, number: '^(a+)+$'}},
      after: {{{says}, stdout: 'a+b$'}}}}"""
    report = boxes.night(" ".join(suite.split()))

    told = states(report)
    assert (told["command:output"], told["command:figure"]) == ("skip", "skip")
    assert "was searched for in 62 characters" in found(report, "command:output").message
    assert "Repeat nothing that itself repeats" in found(report, "command:output").message
    assert told["command:after"] == "pass"
    assert report.exit_status == 3


def test_an_unreachable_host_fails_once_and_leaves_the_others_alone(boxes: Boxes) -> None:
    """One finding for the dead host, every check for the other; status 1 only if that failed."""
    dead = ["  dead: {address: root@127.0.0.1:9, connect_timeout_s: 2}"]
    report = boxes.night("hosts: [dead, sim], profiles: [baseline]", more=dead)

    assert list(states(report, "dead")) == ["reach"]
    assert found(report, "reach", "dead").state == "fail"
    assert found(report, "speed:baseline", "sim").state == "pass"
    assert report.exit_status == 4


def test_hosts_of_their_own_are_looked_at_side_by_side(boxes: Boxes) -> None:
    """Two boxes in one night, each with every check, and nothing left on either."""
    report = boxes.night("hosts: [sim, two]", hosts=("sim", "two"))

    assert set(states(report, "sim")) == set(states(report, "two"))
    assert report.night.hosts == ("sim", "two")
    assert report.ok


def test_hosts_of_one_machine_are_looked_at_one_after_the_other(boxes: Boxes) -> None:
    """Two names of one machine: both are measured, neither finds the other at it."""
    file = boxes.write("hosts: [sim, twin], profiles: []", hosts=("sim", "twin"))
    file.write_text(file.read_text().replace("box-twin", "box-sim"))
    with load(file) as library:
        report = library.nightly().run()

    assert [found(report, "busy", host).state for host in ("sim", "twin")] == ["pass", "pass"]


def test_a_host_that_cannot_be_held_costs_the_others_nothing(boxes: Boxes) -> None:
    """No state can be written there: that is told of it, and the other is looked at."""
    library = boxes.open("hosts: [sim, twin], profiles: []", hosts=("sim", "twin"))
    state = Path(boxes.box("twin").layout.state, "eagleops")
    state.write_text("no folder")

    report = library.nightly().run()

    assert found(report, "disk").state == "pass"
    assert found(report, "busy", "twin").state == "skip"
    assert report.exit_status == 3
    state.unlink()


def test_one_host_of_a_suite_can_be_looked_at_alone(boxes: Boxes) -> None:
    """The others are no part of that night; a stranger is refused before anything is touched."""
    library = boxes.open("hosts: [sim, two]", hosts=("sim", "two", "three"))

    report = library.nightly().run(["two"])

    assert report.night.hosts == ("two",)
    assert {finding.host for finding in report.findings} == {"two"}
    with pytest.raises(UsageError, match="three is no host of the suite default"):
        library.nightly().run(["three"])


def test_checks_that_are_off_are_not_made(boxes: Boxes) -> None:
    """`off` leaves a kind out, whichever part of the night makes it."""
    suite = "profiles: [baseline], checks: {speed: off, doctor: off, xid: off, busy: off}"
    report = boxes.night(suite)

    kinds = {finding.kind for finding in report.findings}
    assert not kinds & {"speed", "doctor", "xid", "busy"}
    assert "launch" in kinds


def test_the_time_limit_ends_a_night_in_a_clear_state(boxes: Boxes) -> None:
    """A server that never gets ready is ended at the limit; what was left is skipped."""
    suite = "profiles: [baseline, second], limit_s: 20"
    report = boxes.night(suite, sim="fail: hang")

    assert report.night.outcome == "time_limit"
    assert report.exit_status == 3
    assert "limit of 20 s" in found(report, "launch:baseline").message
    assert found(report, "launch:second").state == "skip"
    assert boxes.servers() == {}
