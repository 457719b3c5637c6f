"""The client's picture of a server, and its state over time."""

from __future__ import annotations

import attrs
import pytest

from eagleops.server import ServerFacts
from parts.poll import until


def test_a_servers_facts_arrive_whole(place, session) -> None:
    """Every field of the operation's answer is a field of the client's type, and the reverse."""
    told = session.call("spawn", name="a", launch=place.serving("plain"))["server"]

    facts = ServerFacts.from_dict(told)

    assert set(told) == {field.name for field in attrs.fields(ServerFacts)}
    assert {**facts.to_dict(), "tree": list(facts.tree)} == told
    assert (facts.is_alive, facts.ending) == (True, "")


def test_facts_without_an_answer_have_their_defaults() -> None:
    """A null is an absent value."""
    facts = ServerFacts.from_dict({"name": "a", "state": "lost", "profile": None, "tree": []})

    assert facts == ServerFacts("a", "lost")
    assert not facts.is_alive


@pytest.mark.parametrize(
    ("script", "ending"),
    [("exit 3", "ended with status 3"), ("kill -9 $$", "ended by SIGKILL")],
)
def test_how_it_ended_is_a_sentence(place, session, script, ending) -> None:
    """For messages."""
    session.call("spawn", name="a", launch=place.launch(["sh", "-c", script]))

    def facts() -> ServerFacts:
        return ServerFacts.from_dict(session.call("servers")["servers"][0])

    until(lambda: not facts().is_alive)
    assert facts().ending == ending


def test_a_slow_server_does_not_hold_up_the_list(place, session) -> None:
    """One that takes 20 s to answer is listed as starting after 3, the others as they are."""
    session.call("spawn", name="slow", launch=place.serving("plain", "--slow-probe-s", 20))
    session.call("spawn", name="quick", launch=place.serving("plain"))

    def quick() -> bool:
        states = {s["name"]: s["state"] for s in session.call("servers")["servers"]}
        assert states["slow"] == "starting"
        return states["quick"] == "ready"

    assert until(quick)
