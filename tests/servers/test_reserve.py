"""Operations ``reserve`` and ``release``: a launch has the machine to itself."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from eagleops.errors import OperationFailed
from parts.poll import until
from servers.places import session_pid, states

A, B = "a" * 32, "b" * 32


def refused(session, name: str = "b", launch_id: str = B) -> OperationFailed:
    """The refusal of a reservation."""
    with pytest.raises(OperationFailed) as failed:
        session.call("reserve", name=name, launch_id=launch_id)
    return failed.value


def test_one_launch_has_the_machine(place, session) -> None:
    """The other is told whose it is and since when, by whatever session it asks."""
    session.call("reserve", name="a", launch_id=A)

    for other in (place.session(), session):
        error = refused(other)
        assert error.kind == "launch_in_progress"
        assert error.problem == (
            f"a launch of a is in progress since {error.data['holder']['since_utc']} "
            f"(PID {session_pid(session)})"
        )
        assert error.way_out == "Wait for it: eagleops status."


def test_ten_reservations_at_once_give_one(place) -> None:
    """Whoever comes first."""
    sessions = [place.session() for _ in range(5)]

    def attempt(number: int) -> str:
        try:
            sessions[number % 5].call("reserve", name="a", launch_id=f"{number:032x}")
        except OperationFailed as failed:
            return failed.kind
        return "reserved"

    with ThreadPoolExecutor(10) as pool:
        outcomes = sorted(pool.map(attempt, range(10)))

    assert outcomes == ["launch_in_progress"] * 9 + ["reserved"]


def test_a_launch_may_reserve_twice(place, session) -> None:
    """Its own reservation is no obstacle, whichever session asks."""
    session.call("reserve", name="a", launch_id=A)

    assert place.session().call("reserve", name="a", launch_id=A) == {"reserved": "a"}


def test_spawn_ends_the_reservation_of_its_launch_whatever_comes_of_it(place, session) -> None:
    """Also from another session of the same client, and also when it is refused."""
    other = place.session()
    for argv in (["sleep", "600"], ["no-such-program"]):
        launch = place.launch(argv)
        session.call("reserve", name="x", launch_id=launch["launch_id"])
        try:
            other.call("spawn", name=argv[0], launch=launch)
        except OperationFailed as failed:
            assert failed.kind == "spawn_failed"  # noqa: PT017 - one of two fails, and which

        session.call("reserve", name="y", launch_id=B)
        assert session.call("release", launch_id=B) == {"released": True}


def test_only_the_launch_itself_releases(place, session) -> None:
    """Another's id changes nothing."""
    session.call("reserve", name="a", launch_id=A)

    assert place.session().call("release", launch_id=B) == {"released": False}
    assert refused(session).kind == "launch_in_progress"
    assert session.call("release", launch_id=A) == {"released": True}
    assert session.call("reserve", name="b", launch_id=B) == {"reserved": "b"}


def test_a_client_that_dies_gives_the_machine_back(place, session) -> None:
    """Its session over there ends with it, and the reservation with that."""
    dying = place.session()
    dying.call("reserve", name="a", launch_id=A)
    pid = session_pid(dying)

    os.kill(pid, 9)

    assert until(lambda: is_free(session))


def is_free(session) -> bool:
    """Whether a reservation is granted."""
    try:
        session.call("reserve", name="b", launch_id=B)
    except OperationFailed:
        return False
    return True


def test_a_name_that_lives_cannot_be_reserved(place, session) -> None:
    """Before anything is reset: the reset would end that server."""
    server = session.call("spawn", name="a", launch=place.launch(["sleep", "600"]))["server"]

    error = refused(session, "a")

    assert error.kind == "server_exists"
    assert error.problem == f"a server a is {states(session)['a']} (PID {server['pid']})"


def test_a_name_that_has_ended_can_be_reserved(place, session) -> None:
    """Its folder is used again."""
    session.call("spawn", name="a", launch=place.launch(["true"]))
    until(lambda: states(session) == {"a": "exited"})

    assert session.call("reserve", name="a", launch_id=A) == {"reserved": "a"}
