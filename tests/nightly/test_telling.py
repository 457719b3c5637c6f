"""What leaves a night: a message where there is news, once, and the reports' places."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eagleops.workflows.progress import Step
from nightly.boxes import SECRET, Boxes, found
from parts.receiver import TOKEN, Receiver, Reply


@pytest.fixture
def receive(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., tuple[Receiver, str]]]:
    """Starts receivers, each with the reference by which hosts.yaml names its URL."""
    started: list[Receiver] = []

    def begin(*replies: Reply) -> tuple[Receiver, str]:
        started.append(Receiver(*replies))
        # A name of its own: a value is fetched once a process.
        name = f"HOOK_URL_{started[-1].port}"
        monkeypatch.setenv(name, started[-1].url())
        return started[-1], f"{{secret: 'env:{name}'}}"

    yield begin
    for receiver in started:
        receiver.close()


def heard(receiver: Receiver) -> list[dict[str, Any]]:
    """The messages that came."""
    return [json.loads(request.body) for request in receiver.requests]


def test_a_channel_reads_of_a_fault_when_it_begins_and_when_it_ends(
    boxes: Boxes, receive: Callable[..., tuple[Receiver, str]]
) -> None:
    """Four nights, two messages of each shape; neither holds the URL or a secret."""
    receiver, url = receive()
    hooks = f"notify: [{{url: {url}}}, {{url: {url}, shape: slack}}]"
    sound = boxes.night(hooks)
    boxes.box().break_gpu(0, temperature_c=85)
    begun = boxes.night(hooks)
    boxes.night(hooks)
    boxes.box().break_gpu(0)
    boxes.night(hooks)

    assert sound.deliveries == {}
    assert [name.split()[0] for name in begun.deliveries] == ["json", "slack"]
    assert all(told["ok"] for told in begun.deliveries.values())
    documents = [one for one in heard(receiver) if one.get("event") == "nightly"]
    told = [
        ([f["check"] for f in one["began"]], [f["check"] for f in one["ended"]])
        for one in documents
    ]
    assert told == [(["temperature"], []), ([], ["temperature"])]
    assert documents[0]["report"] == begun.reports["html"]
    assert len(receiver.requests) == 4
    text = json.dumps(heard(receiver)) + json.dumps(begun.to_dict())
    assert TOKEN not in text
    assert SECRET not in text


def test_whoever_watches_is_told_which_receiver_is_waited_for(
    boxes: Boxes, receive: Callable[..., tuple[Receiver, str]]
) -> None:
    """Where a message is sent, once for each; a night without news tells of none."""
    receiver, url = receive()
    library = boxes.open(f"notify: [{{url: {url}}}, {{url: {url}, shape: slack}}]")
    steps: list[Step] = []
    library.nightly().run(progress=steps.append)
    assert "send" not in {step.stage for step in steps}
    boxes.box().break_gpu(0, temperature_c=85)

    library.nightly().run(progress=steps.append)

    told = [step.event["detail"] for step in steps if step.stage == "send" and step.event]
    assert [detail.split()[:2] for detail in told] == [["to", "json"], ["to", "slack"]]
    assert TOKEN not in str(steps)
    assert len(receiver.requests) == 2


def test_a_message_that_got_lost_is_told_with_the_next_night(
    boxes: Boxes, receive: Callable[..., tuple[Receiver, str]]
) -> None:
    """A receiver that refuses costs no night; the news comes when it takes messages again."""
    receiver, url = receive(Reply(403))
    suite = f"notify: [{{url: {url}}}]"
    boxes.box().break_gpu(0, temperature_c=85)
    lost = boxes.night(suite)
    boxes.night(suite)
    boxes.night(suite)

    assert lost.exit_status == 0
    assert [told["ok"] for told in lost.deliveries.values()] == [False]
    assert found(lost, "temperature").state == "warn"
    refused, taken = heard(receiver)
    assert [fault["check"] for fault in taken["began"]] == ["temperature"]
    assert refused["night"] != taken["night"]


def test_a_secret_that_cannot_be_had_costs_the_message_alone(
    boxes: Boxes,
) -> None:
    """The night is kept, and says why nobody was told."""
    boxes.box().break_gpu(0, temperature_c=85)

    report = boxes.night("notify: [{url: {secret: 'env:HOOK_URL_OF_NOBODY'}}]")

    assert list(report.deliveries) == ["json env:HOOK_URL_OF_NOBODY"]
    assert "is not set" in report.deliveries["json env:HOOK_URL_OF_NOBODY"]["problem"]
    assert set(report.reports) == {"html", "junit", "json"}


def test_old_nights_and_reports_are_removed(boxes: Boxes) -> None:
    """`keep_nights` holds for both; the last one stands under its lasting name as well."""
    library = boxes.open("checks: {doctor: off}, keep_nights: 2")

    for _ in range(3):
        library.nightly().run()

    assert len(list(boxes.folder.glob("nights/default/*.json"))) == 2
    reports = sorted(path.name for path in boxes.folder.glob("nights/default/reports/*.html"))
    assert len(reports) == 3
    assert reports[-1] == "default-latest.html"


def test_a_night_of_a_clock_that_was_ahead_pushes_no_later_one_out(boxes: Boxes) -> None:
    """However few are kept: what began is told once, and its reports are there."""
    library = boxes.open("checks: {doctor: off}, keep_nights: 1")
    ahead = library.nightly().run(now=lambda: "2999-01-01T04:30:00Z")
    boxes.box().break_gpu(0, temperature_c=85)
    begun = library.nightly().run()
    stands = library.nightly().run()

    assert [fault.check for fault in begun.news.began] == ["temperature"]
    assert not stands.changed
    assert [fault.nights for fault in stands.news.standing] == [2]
    for night in (ahead, stands):
        assert all(Path(place).exists() for place in night.reports.values())
