"""Operation ``tail``: a server's log, alive or dead."""

from __future__ import annotations

import threading

import pytest

from eagleops.errors import OperationFailed
from parts.poll import until
from servers.places import states


def lines_of(session, **settings) -> list[str]:
    """All lines that a tail yields."""
    found: list[str] = []
    for event in session.stream("tail", name="a", **settings):
        found += event.get("lines", [])
    return found


def test_the_last_lines_of_a_dead_server_are_told(any_place) -> None:
    """The log outlives the server."""
    session = any_place.session()
    launch = any_place.launch(["sh", "-c", "seq 1 500; printf end"])
    session.call("spawn", name="a", launch=launch)
    until(lambda: states(session) == {"a": "exited"})

    assert lines_of(session, lines=3) == ["499", "500", "end"]
    assert lines_of(session, lines=0) == []
    assert len(lines_of(session, lines=10_000)) == 501


def test_a_log_that_is_followed_is_told_whole_and_once(place, session) -> None:
    """Every line from the first to the last word, none twice, and it ends with the server."""
    script = "for i in $(seq 1 300); do echo line $i; sleep 0.002; done; printf end"
    session.call("spawn", name="a", launch=place.launch(["bash", "-c", script]))

    found = lines_of(session, lines=1000, follow=True)

    assert found == [f"line {number}" for number in range(1, 301)] + ["end"]


def test_following_ends_when_it_is_called_off(place, session) -> None:
    """Closing the stream leaves the server alone."""
    script = "while :; do echo tick; sleep 0.01; done"
    session.call("spawn", name="a", launch=place.launch(["bash", "-c", script]))
    stream = session.stream("tail", name="a", follow=True)
    assert next(stream)["lines"][0] == "tick"

    stream.close()

    assert states(session)["a"] in {"starting", "ready"}


def test_two_may_follow_at_once(place) -> None:
    """Each in a session of its own."""
    script = "for i in $(seq 1 50); do echo $i; sleep 0.005; done"
    first, second = place.session(), place.session()
    first.call("spawn", name="a", launch=place.launch(["bash", "-c", script]))
    found: list[list[str]] = []

    threads = [
        threading.Thread(target=lambda s=session: found.append(lines_of(s, lines=100, follow=True)))
        for session in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert found == [[str(number) for number in range(1, 51)]] * 2


def test_only_a_server_has_a_log(session) -> None:
    """A name that was never launched is an error."""
    with pytest.raises(OperationFailed) as refused:
        lines_of(session)

    assert refused.value.kind == "no_such_server"
