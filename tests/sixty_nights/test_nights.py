"""What nights on end tell: every fault when it begins and when it ends, and nothing else.

Each night is a whole one on the embedded box: see :mod:`sixty_nights.course`. The suite lives
through eighteen; `make nights` through the sixty of which docs/reference/sixty-nights.md tells.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from eagleops.workflows.nightly.report import NightReport
from parts.receiver import Receiver
from parts.reserved import free_port
from sixty_nights.course import FIRST_NIGHT, PATCH, SHORT, WHOLE, Course, Nights, night_of, nights

SPEED, THROTTLING = "speed:eagle3", "throttling:eagle3"
NEWS = ("began", "worsened", "ended", "events")


def whole() -> Any:
    """The sixty nights, which `make nights` alone has the time for."""
    return pytest.param(WHOLE, id="sixty", marks=pytest.mark.sixty_nights)


def short() -> Any:
    """Eighteen nights. They measure, and what runs beside them would be in their figures."""
    return pytest.param(SHORT, id="eighteen", marks=pytest.mark.alone)


@pytest.fixture(scope="module", params=[short(), whole()])
def lived(request, tmp_path_factory) -> Iterator[tuple[Nights, list[dict[str, Any]]]]:
    """The nights that were lived through, and the messages that were sent."""
    course: Course = request.param
    folder = tmp_path_factory.mktemp("nights")
    receiver = Receiver()
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith("EAGLEOPS_")]:
            patched.delenv(name)
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        try:
            with nights(folder, course, free_port(), receiver.url()) as box:
                began_s = time.monotonic()
                for one in range(1, course.nights + 1):
                    box.live_through(one)
                keep(box, time.monotonic() - began_s)
                yield box, [json.loads(request.body) for request in receiver.requests]
        finally:
            receiver.close()


def keep(box: Nights, took_s: float) -> None:
    """Writes down what the nights told, for the page that `make nights` makes."""
    if folder := os.environ.get("RECORD_NIGHTS"):
        told = [night_as_row(number, report) for number, report in box.told.items()]
        body = {
            "nights": told,
            "took_s": took_s,
            "trend": box.told[box.course.nights].trends[0].to_dict(),
        }
        Path(folder, f"{box.course.nights}.json").write_text(json.dumps(body), encoding="utf-8")
        page = Path(box.told[box.course.nights].reports["html"])
        shutil.copy(page, Path(folder, f"{box.course.nights}.html"))


def night_as_row(number: int, report: NightReport) -> dict[str, Any]:
    """A night in a line."""
    speed = report.night.finding("sim", SPEED)
    return {
        "night": number,
        "date": report.night.began_utc[:10],
        "tok_s": speed and speed.value,
        "exit_status": report.exit_status,
        "news": {
            group: [{"check": f.check, "message": f.message} for f in getattr(report.news, group)]
            for group in NEWS
        },
    }


def failed_nights(box: Nights) -> list[int]:
    """The nights in which the speed failed."""
    return [
        number
        for number, report in box.told.items()
        if (found := report.night.finding("sim", SPEED)) and found.state == "fail"
    ]


def test_the_regression_is_found_dated_and_tied_to_the_patched_file(lived) -> None:
    """It is a failure within five nights of its first, by its very night, with its cause."""
    box, _ = lived
    failed = failed_nights(box)
    found = box.told[failed[0]].night.finding("sim", SPEED)
    since = datetime.fromisoformat(
        found.facts["drift"]["since"]["after"]["at_utc"].replace("Z", "+00:00")
    )

    assert box.course.patched + 2 <= failed[0] <= box.course.patched + 5
    assert abs((since - night_of(box.course.patched)).days) <= 2
    assert found.message.partition("Changed then: ")[2].startswith(f"sglang: {PATCH}")


def test_no_other_night_is_taken_for_a_change(lived) -> None:
    """Not one before the regression or after its end, outlier and throttled night among them."""
    box, _ = lived
    end = box.course.mended + 3 if box.course.mended else box.course.nights + 1
    changes = {
        change["after"]["at_utc"][:10]
        for report in box.told.values()
        if (found := report.night.finding("sim", SPEED))
        for change in found.facts.get("drift", {}).get("changes", ())
    }
    real = [box.course.patched, *([box.course.mended] if box.course.mended else [])]
    near = {
        night_of(number + off).date().isoformat() for number in real for off in (-2, -1, 0, 1, 2)
    }

    assert set(failed_nights(box)) <= set(range(box.course.patched, end))
    assert changes <= near


def test_the_throttled_night_is_explained_and_does_not_count(lived) -> None:
    """Its own check fails, its speed is left out with the reason, and the next night is well."""
    box, _ = lived
    night = box.told[box.course.throttled].night
    speed = night.finding("sim", SPEED)
    after = box.told[box.course.throttled + 1].night

    assert night.finding("sim", THROTTLING).state == "fail"
    assert "HW thermal slowdown" in night.finding("sim", THROTTLING).message
    assert (speed.state, "throttled" in speed.message) == ("skip", True)
    assert after.finding("sim", SPEED).state == "pass"


def test_each_fault_is_told_once_when_it_begins_and_once_when_it_ends(lived) -> None:
    """By the messages that were really sent, in their nights; quiet nights send none."""
    box, messages = lived
    course = box.course
    hot = ("idle-throttling", "temperature", THROTTLING)
    mended = course.mended

    began = sent(messages, "began")
    # An odd figure at once, unless the history is short; the outlier adds nothing to what stands.
    (first,) = began.pop(SPEED)
    assert course.patched <= first <= course.patched + 5
    assert began == {
        **{check: [course.throttled] for check in hot},
        "reach": [course.dead],
        "engine-files": [course.patched],
    }
    worsened = sent(messages, "worsened")
    assert len(worsened.pop(SPEED, [])) <= 1
    assert worsened == {}
    ended = sent(messages, "ended")
    recovered = ended.pop(SPEED, [])
    assert ended == {
        **{check: [course.throttled + 1] for check in hot},
        "reach": [course.dead + 1],
        **({"engine-files": [mended]} if mended else {}),
    }
    # Two good nights may undo what few slow ones said; three always do.
    over = [] if mended is None else [[mended + after] for after in range(4)]
    assert recovered in over if over else recovered == []
    assert sent(messages, "events") == {}
    assert all(any(message[group] for group in NEWS) for message in messages)


def test_the_last_night_s_report_shows_them_all(lived) -> None:
    """Its page names the change and its cause, and what was left out and why."""
    box, _ = lived
    page = Path(box.told[box.course.nights].reports["html"]).read_text(encoding="utf-8")

    assert PATCH in page
    assert "HW thermal slowdown" in page
    assert night_of(box.course.patched).date().isoformat() in page


def sent(messages: list[dict[str, Any]], group: str) -> dict[str, list[int]]:
    """Per check, the nights whose messages tell it in this group."""
    found: dict[str, list[int]] = {}
    for message in messages:
        began = datetime.fromisoformat(message["began_utc"].replace("Z", "+00:00"))
        for fault in message[group]:
            found.setdefault(fault["check"], []).append((began - FIRST_NIGHT).days + 1)
    return found
