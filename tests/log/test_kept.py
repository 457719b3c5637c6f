"""A log that stays: one line an event, as much as was allowed, and the owner's alone."""

from __future__ import annotations

import contextlib
import io
import re
import threading
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eagleops import log
from eagleops.errors import NightsError
from eagleops.library.nightly_log import FILE, logged
from eagleops.nights.faults import news
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.workflows.nightly.report import NightReport
from eagleops.workflows.progress import Step, unwatched

LINE = re.compile(r"timestamp=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z level=[a-z]+ event=")


def lines(folder: Path) -> list[str]:
    """All lines, the oldest file's first."""
    files = sorted(folder.glob(f"{FILE}*"), key=lambda path: path.name, reverse=True)
    return [line for file in files for line in file.read_text("utf-8").splitlines()]


def test_lines_are_kept_from_info_up(tmp_path) -> None:
    """Each bears its time in UTC, its level and its facts; what is for debugging is left out."""
    with log.kept(tmp_path / FILE) as logger:
        logger.debug("not this")
        logger.info("step", what="box-a: the way in", pid=7)
        logger.bind(host="box-a").error("found")

    kept = lines(tmp_path)
    assert all(map(LINE.match, kept))
    assert [line.split(" ", 1)[1] for line in kept] == [
        'level=info event=step what="box-a: the way in" pid=7',
        "level=error event=found host=box-a",
    ]


def test_a_next_night_goes_on_in_the_same_file(tmp_path) -> None:
    """Nothing that is there is lost when it is opened again."""
    for night in ("one", "two"):
        with log.kept(tmp_path / FILE) as logger:
            logger.info(night)

    assert [line.rpartition("event=")[2] for line in lines(tmp_path)] == ["one", "two"]


def test_no_more_is_kept_than_was_allowed(tmp_path) -> None:
    """Full files are numbered, the oldest goes, and the newest lines are there without a gap."""
    with log.kept(tmp_path / FILE, max_bytes=1000, files=3) as logger:
        for number in range(200):
            logger.info("step", number=number)

    names = sorted(path.name for path in tmp_path.iterdir())
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    numbers = [int(line.rpartition("=")[2]) for line in lines(tmp_path)]
    assert names == [FILE, f"{FILE}.1", f"{FILE}.2"]
    assert max(sizes) <= 1000
    assert numbers == list(range(numbers[0], 200))
    assert len(numbers) > 20


def test_the_log_is_its_owners_alone(tmp_path) -> None:
    """Files and a folder that it makes may be read by nobody else, after it was full too."""
    folder = tmp_path / "nights" / "default"
    with log.kept(folder / FILE, max_bytes=200, files=2) as logger:
        for _ in range(9):
            logger.info("step")

    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


@example("\x1b[2J", "\r\n\u2028")
@given(st.text(), st.text())
def test_whatever_is_logged_is_one_line(tmp_path, event: str, fact: str) -> None:
    """No text breaks out of its line: bytes that are no text, escapes and line ends included."""
    file = tmp_path / FILE
    file.unlink(missing_ok=True)
    with log.kept(file) as logger:
        logger.info(event or "x", fact=fact + "\udcff")

    text = file.read_bytes().decode("utf-8")
    assert len(text.splitlines()) == 1
    assert LINE.match(text)
    assert "\x1b" not in text


def test_threads_do_not_mix_their_lines(tmp_path) -> None:
    """Hosts that are looked at side by side log side by side."""
    with log.kept(tmp_path / FILE, max_bytes=10_000, files=9) as logger:

        def work(host: str) -> None:
            for _ in range(50):
                logger.info("step", host=host)

        threads = [threading.Thread(target=work, args=(f"box-{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    kept = lines(tmp_path)
    assert len(kept) == 200
    assert all(LINE.match(line) and line[-5:-1] == "box-" for line in kept)


def test_a_log_that_cannot_be_written_is_told_once_and_stops_nothing(tmp_path, capsys) -> None:
    """A night is worth more than its log."""
    (tmp_path / "nights").write_text("a file in the folder's place")
    file = tmp_path / "nights" / FILE

    with log.kept(file) as logger:
        logger.info("one")
        logger.info("two")

    assert capsys.readouterr().err == f"{file}: no log is kept: File exists\n"


NIGHT = Night(
    suite="default",
    uuid="0" * 32,
    began_utc="2026-11-30T03:30:00Z",
    ended_utc="2026-11-30T04:00:00Z",
    outcome="done",
    hosts=("box-a",),
    findings=(
        Finding("reach", "box-a", "pass", "reached"),
        Finding("disk", "box-a", "warn", "4 GiB are left"),
        Finding("command:smoke", "box-a", "fail", "it said hush-hush"),
    ),
)


def report(**changes: object) -> NightReport:
    """A night's report."""
    return NightReport(NIGHT, news((), NIGHT), **changes)


def test_a_night_is_logged_from_begin_to_end(tmp_path) -> None:
    """What it looked at, what it found and what became of its message; no secret among them."""
    delivery = {"ok": False, "status": 500, "attempts": 4, "problem": "HTTP 500"}
    seen: list[Step] = []

    with logged(tmp_path, seen.append) as (told, ended):
        told(Step("$ nightly: box-a: the way in"))
        told(Step("look", {"gpus": 8}))
        ended(report(deliveries={"slack 1": delivery}), ["hush-hush"])

    kept = [line.split(" ", 1)[1] for line in lines(tmp_path)]
    assert kept[1:] == [
        'level=info event=step what="box-a: the way in"',
        'level=warning event=found check=disk host=box-a what="4 GiB are left"',
        'level=error event=found check=command:smoke host=box-a what="it said <redacted>"',
        'level=error event=message to="slack 1" status=500 attempts=4 problem="HTTP 500"',
        "level=info event=ends outcome=done exit_status=1 checks=3 changed=true",
    ]
    assert [step.stage for step in seen] == ["$ nightly: box-a: the way in", "look"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NightsError(problem="another process runs it"), "failed error="),
        (ValueError("a fault of ours"), 'failed error="ValueError: a fault of ours"'),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_what_ends_a_night_is_logged_and_goes_on(tmp_path, error, expected: str) -> None:
    """Somebody who finds no report finds the reason."""
    with pytest.raises(type(error)), logged(tmp_path, unwatched):
        raise error

    assert expected in lines(tmp_path)[-1]


def test_a_disk_that_is_full_costs_the_lines_alone() -> None:
    """Told of once, on stderr; what the lines are about goes on, to its end."""
    heard = io.StringIO()
    with contextlib.redirect_stderr(heard), log.kept(Path("/dev/full")) as lines:
        for number in range(3):
            lines.info("step", number=number)

    assert heard.getvalue() == "/dev/full: no log is kept: No space left on device\n"
