"""Operation ``stop``: nothing of a server is left, and nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from parts.poll import until
from servers.places import lives, of_launches, states


def start(place, session, engine: str, *arguments: object, workers: int = 0, **fields) -> dict:
    """Spawns a serving engine as ``a`` and waits until all its workers have said so."""
    launch = place.serving(
        engine, *arguments, "--workers", workers, "--mark", place.mark("m"), **fields
    )
    server: dict = session.call("spawn", name="a", launch=launch)["server"]
    until(lambda: len(workers_of(place)) == workers)
    return server


def workers_of(place) -> list[str]:
    """The marks of the workers."""
    return [what for _, what in place.read_marks("m") if what.startswith("worker")]


def stopped(session, name: str = "a", **settings) -> tuple[dict, list[dict]]:
    """The result of a stop, and its events."""
    events: list[dict] = []
    result = session.call("stop", name=name, on_event=events.append, **settings)
    return result, events


def gone(place) -> bool:
    """Whether nothing of the launches lives, the supervisors included."""
    return of_launches(place.launch_ids, f"{place.state_home}/eagleops/servers") == []


def test_a_server_is_ended_with_all_its_workers(any_place) -> None:
    """SIGTERM ends the main process, and stop returns when the whole tree is gone."""
    session = any_place.session()
    server = start(any_place, session, "plain", workers=2)

    result, events = stopped(session)

    assert (result["already_exited"], result["left"]) == (False, [])
    facts = result["server"]
    assert (facts["state"], facts["signal"], facts["tree"]) == ("exited", "SIGTERM", [])
    assert result["killed"][0]["pid"] == server["pid"]
    assert result["killed"][0]["signal"] == "SIGTERM"
    signalled = [event["pid"] for event in events if event["event"] == "signalled"]
    assert signalled[0] == server["pid"]
    assert gone(any_place)
    assert states(session) == {"a": "exited"}


def test_a_server_that_ignores_sigterm_is_killed_after_the_grace_period(place, session) -> None:
    """Draining without limit is no answer: the grace is ours, and the workers go too."""
    start(place, session, "stubborn", workers=2)

    begun = time.monotonic()
    result, _ = stopped(session, grace_s=0.5)

    assert time.monotonic() - begun >= 0.5
    assert result["server"]["signal"] == "SIGKILL"
    assert {one["signal"] for one in result["killed"]} == {"SIGKILL"}
    assert gone(place)


def test_workers_that_left_the_process_group_and_lost_their_parent_are_ended(any_place) -> None:
    """A session of their own does not hide them: they come back to the supervisor."""
    session = any_place.session()
    server = start(any_place, session, "reparented", workers=2)
    assert until(lambda: len(session.call("servers")["servers"][0]["tree"]) == 3)

    result, _ = stopped(session, grace_s=5)

    assert result["left"] == []
    assert len(result["killed"]) == 3
    assert result["server"]["pid"] == server["pid"]
    assert gone(any_place)


def test_what_outlived_its_main_process_is_found_and_ended(place, session) -> None:
    """The name is not free while they live, and stop ends them."""
    start(place, session, "leaves_orphans", workers=2)
    assert until(lambda: states(session) == {"a": "exited"})
    found = session.call("servers")["servers"][0]
    assert (found["exit_status"], found["detail"]) == (
        7,
        f"{len(found['tree'])} of its processes outlived it",
    )
    assert len(found["tree"]) >= 2

    with pytest.raises(OperationFailed) as refused:
        session.call("spawn", name="a", launch=place.launch(["true"]))
    assert refused.value.kind == "server_exists"
    pids = ", ".join(map(str, found["tree"]))
    assert refused.value.problem == f"the server a is exited, but PIDs {pids} of it live"

    result, _ = stopped(session)

    assert (result["already_exited"], result["left"]) == (False, [])
    assert {one["pid"] for one in result["killed"]} >= set(found["tree"])
    assert gone(place)
    assert result["server"]["exit_status"] == 7


@pytest.mark.parametrize("titled", [False, True])
def test_the_tree_of_a_lost_server_is_found_and_ended(place, session, titled) -> None:
    """With the supervisor killed: by the launch's id in the environment, whole or overwritten."""
    arguments = ["--titled"] if titled else []
    server = start(place, session, "reparented", *arguments, workers=2)
    os.kill(server["supervisor_pid"], signal.SIGKILL)
    until(lambda: states(session) == {"a": "lost"})
    workers = sorted(int(mark.split()[1]) for mark in workers_of(place))
    if titled:
        environ = Path(f"/proc/{workers[0]}/environ").read_bytes()
        assert b"EAGLEOPS_LAUNCH_ID" not in environ

    found = session.call("servers")["servers"][0]
    assert found["tree"] == sorted([server["pid"], *workers])
    assert found["detail"] == (
        "its supervisor is gone: how it ends will not be known; 3 of its processes live"
    )

    result, _ = stopped(session, grace_s=5)

    assert result["left"] == []
    assert (result["server"]["state"], result["server"]["tree"]) == ("exited", [])
    assert (result["server"]["exit_status"], result["server"]["signal"]) == (None, None)
    assert [pid for pid in found["tree"] if lives(pid)] == []


def test_a_lost_servers_name_is_not_free_while_it_lives(place, session) -> None:
    """A second server beside it would fight over the GPUs."""
    server = start(place, session, "plain")
    os.kill(server["supervisor_pid"], signal.SIGKILL)
    until(lambda: states(session) == {"a": "lost"})

    with pytest.raises(OperationFailed) as refused:
        session.call("spawn", name="a", launch=place.launch(["true"]))

    assert refused.value.problem == f"the server a is lost, but PIDs {server['pid']} of it live"


def test_a_stranger_with_the_pid_on_record_is_left_alone(place, session) -> None:
    """Same pid, another start time: somebody else's process."""
    server = start(place, session, "plain")
    stopped(session)
    record = place.folder("a") / "process.json"
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        text = record.read_text().replace(f'"pid": {server["pid"]}', f'"pid": {stranger.pid}')
        record.write_text(text)
        (place.folder("a") / "exit.json").unlink()

        result, events = stopped(session)

        assert (result["already_exited"], result["server"]["state"], events) == (True, "lost", [])
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_other_servers_are_left_alone(place, session) -> None:
    """Only the named one ends."""
    session.call("spawn", name="b", launch=place.launch(["sleep", "600"]))
    start(place, session, "plain")

    stopped(session)

    assert states(session)["a"] == "exited"
    assert states(session)["b"] in {"starting", "ready"}


def test_a_server_that_has_ended_is_no_error(place, session) -> None:
    """Stop twice is stop once."""
    start(place, session, "plain")
    stopped(session)

    result, events = stopped(session)

    assert (result["already_exited"], result["killed"], result["left"], events) == (
        True,
        [],
        [],
        [],
    )
    assert result["server"]["signal"] == "SIGTERM"


def test_a_server_that_was_never_launched_cannot_be_stopped(session) -> None:
    """The error says that none was launched."""
    with pytest.raises(OperationFailed) as refused:
        stopped(session)

    assert (refused.value.kind, refused.value.problem, refused.value.way_out) == (
        "no_such_server",
        "no server a was launched here",
        "Launched here: none.",
    )


def test_a_stop_is_seen_while_it_lasts(place, session) -> None:
    """Others see ``stopping``, and a watch says that it was asked for."""
    start(place, session, "stubborn", workers=1)
    other = place.session()
    stream = session.stream("stop", name="a", grace_s=3.0)
    assert next(stream)["event"] == "signalled"

    assert states(other) == {"a": "stopping"}
    watching = other.stream("watch", name="a")
    list(stream)

    result = list(watching)[-1]["result"]
    assert (result["outcome"], result["detail"]) == (
        "died",
        "ended by SIGKILL, after it was asked to stop",
    )


def test_a_stopped_process_is_woken_to_hear_sigterm(place, session) -> None:
    """One that SIGSTOP holds would not heed it before."""
    server = start(place, session, "plain")
    os.kill(server["pid"], signal.SIGSTOP)

    result, _ = stopped(session, grace_s=60)

    assert result["server"]["signal"] == "SIGTERM"


def test_a_client_that_dies_while_it_stops_can_stop_again(place, session) -> None:
    """The server is left stopping, and a second stop ends it."""
    start(place, session, "stubborn", workers=1)
    stream = session.stream("stop", name="a", grace_s=60)
    next(stream)
    stream.close()
    assert states(session) == {"a": "stopping"}

    result, _ = stopped(session, grace_s=0.1)

    assert (result["left"], result["server"]["state"]) == ([], "exited")
    assert gone(place)


def test_a_name_can_be_launched_again_after_a_stop(any_place) -> None:
    """At once, on the same port."""
    session = any_place.session()
    server = start(any_place, session, "plain", workers=1)
    session.call("watch", name="a", timeout_s=60)
    stopped(session)

    again = any_place.serving("plain", port=server["port"])
    session.call("spawn", name="a", launch=again)

    assert session.call("watch", name="a", timeout_s=60)["outcome"] == "ready"
