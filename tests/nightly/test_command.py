"""`eagleops nightly` as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import eagleops
from nightly.boxes import Boxes


def run(boxes: Boxes, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line of a client of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(eagleops.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-m", "eagleops", "nightly", *words],
        cwd=boxes.folder,
        env={**environment, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_dry_run_tells_every_check_and_touches_nothing(boxes: Boxes) -> None:
    """Which check with which limit on which host; no machine, no box, no night is made."""
    boxes.write("profiles: [{profile: baseline, pin: 42}], checks: {disk: {limit: 5}, fan: off}")

    told = run(boxes, "--dry-run")
    document = json.loads(run(boxes, "--dry-run", "--json").stdout)

    assert told.returncode == 0
    assert "speed:baseline" in told.stdout
    assert "1 host, baseline; nothing was touched (dry run)" in told.stdout.splitlines()[-1]
    assert "The night ends after 4 h." in told.stdout
    assert "A timer starts it at *-*-* 04:30:00. News goes to nobody" in told.stdout
    checks = {check["id"]: check for check in document["checks"]}
    assert checks["disk"] == {
        "id": "disk", "host": "sim", "severity": "warn", "limit": 5, "unit": "MiB"
    }  # fmt: skip
    assert "fan" not in checks
    assert "pin:baseline" in checks
    assert "restore" not in checks  # nothing is ever stopped
    assert not boxes.folder.joinpath("box-sim").exists()
    assert not boxes.folder.joinpath("nights").exists()


def test_json_is_one_document_on_stdout(boxes: Boxes) -> None:
    """Nothing beside it on either stream, and the same facts as the report's file."""
    boxes.write()

    done = run(boxes, "--json")

    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    document = json.loads(line)
    assert (document["command"], document["suite"], document["changed"]) == (
        "nightly",
        "default",
        False,
    )
    file = Path(document["reports"]["json"])
    kept = json.loads((boxes.folder / file).read_text())
    assert kept["checks"] == document["checks"]


def test_a_quiet_night_prints_nothing_until_there_is_news(boxes: Boxes) -> None:
    """A night without news is silent on both streams; one with news is not."""
    boxes.write()
    silent = run(boxes, "--quiet")
    boxes.box().break_gpu(0, temperature_c=85)
    begins = run(boxes, "--quiet")
    stands = run(boxes, "--quiet")
    boxes.box().break_gpu(0)
    ends = run(boxes, "--quiet")

    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    assert "temperature" in begins.stdout
    assert (stands.returncode, stands.stdout, stands.stderr) == (0, "", "")
    assert "Ended tonight" in ends.stdout


def test_a_quiet_night_whose_news_or_reports_got_lost_is_not_silent(boxes: Boxes) -> None:
    """Nobody else would ever know: the webhook is dead, the file of metrics cannot be replaced."""
    hook = f"notify: [{{url: 'http://127.0.0.1:{boxes.other_port}/x'}}]"
    boxes.write(f"checks: {{doctor: off}}, {hook}")
    boxes.box().break_gpu(0, temperature_c=85)
    run(boxes, "--quiet")
    still_lost = run(boxes, "--quiet")
    boxes.write("checks: {doctor: off}, prometheus: metrics.prom")
    (boxes.folder / "metrics.prom").mkdir()
    unwritten = run(boxes, "--quiet")

    assert still_lost.returncode == unwritten.returncode == 0
    assert "message not delivered to json 127.0.0.1" in still_lost.stdout
    assert "nothing new" in still_lost.stdout.splitlines()[-1]
    assert "not every report could be written: prometheus" in unwritten.stdout
    log = (boxes.folder / "nights/default/nightly.log").read_text()
    assert "not every report could be written: prometheus" in log


def test_a_timer_is_for_a_whole_suite(boxes: Boxes) -> None:
    """What it would not heed is refused, and nothing is planned."""
    boxes.write()

    one = run(boxes, "--install-timer", "--dry-run", "--host", "sim")
    fresh = run(boxes, "--install-timer", "--fresh")

    assert (one.returncode, one.stdout, fresh.returncode, fresh.stdout) == (2, "", 2, "")
    assert "--install-timer is for the whole suite default: --host" in one.stderr
    assert "--fresh would not be heeded" in fresh.stderr


def test_what_is_wrong_in_hosts_yaml_is_told_before_anything_is_touched(boxes: Boxes) -> None:
    """Status 2, one error, no box made."""
    boxes.write("profiles: [missing]")

    done = run(boxes)

    assert done.returncode == 2
    assert "missing" in done.stderr
    assert not boxes.folder.joinpath("box-sim").exists()


def test_a_suite_that_is_not_there_is_a_usage_error(boxes: Boxes) -> None:
    """With what there is."""
    boxes.write()

    done = run(boxes, "--suite", "weekly")

    assert done.returncode == 2
    assert "there is no suite weekly" in done.stderr
