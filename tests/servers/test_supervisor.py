"""The supervisor: it reaps, records and ends, on any Python and on a full disk."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from eagleops.transport.local import LocalTransport
from parts import needs
from parts.poll import until
from servers.places import Place, lives, local_place, of_launches, states


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_a_servers_whole_life_on_another_python(tmp_path, version) -> None:
    """Launch, watch, tail, stop: the oldest and the newest Python do it alike."""
    place = local_place(tmp_path, LocalTransport())
    place.python = needs.python(version)
    try:
        session = place.session()
        launch = place.serving("plain", "--workers", 1, env={"ODD": "\udcff\n"})
        server = session.call("spawn", name="a", launch=launch)["server"]
        assert session.call("watch", name="a", timeout_s=60)["outcome"] == "ready"
        assert b"ODD=\xff\n\0" in Path(f"/proc/{server['pid']}/environ").read_bytes()
        assert next(session.stream("tail", name="a"))["lines"][0] == "Load weight begin."
        stopped = session.call("stop", name="a")
        assert (stopped["left"], stopped["server"]["signal"]) == ([], "SIGTERM")
        assert of_launches(place.launch_ids, place.state_home) == []
    finally:
        place.close()


@pytest.mark.parametrize(
    ("script", "exit_status", "signal"),
    [
        ("exit 0", 0, None),
        ("exit 255", 255, None),
        ("kill -9 $$", None, "SIGKILL"),
        ("kill -6 $$", None, "SIGABRT"),
        ("kill -34 $$", None, "SIGRTMIN"),
        ("kill -40 $$", None, "SIG40"),
    ],
)
def test_how_a_server_ended_is_on_record(place, session, script, exit_status, signal) -> None:
    """A status or a signal, and when."""
    session.call("spawn", name="a", launch=place.launch(["sh", "-c", script]))
    server = until(lambda: recorded_end(session))

    assert (server["exit_status"], server["signal"]) == (exit_status, signal)
    assert server["ended_utc"] >= server["started_utc"]
    assert server["ended_utc"].endswith("Z")


def recorded_end(session) -> dict | None:
    """The server once its end is on record: a slow disk may take a moment for it."""
    (server,) = session.call("servers")["servers"]
    return server if server["ended_utc"] else None


def test_the_supervisor_ends_with_the_last_of_the_tree(place, session) -> None:
    """Not with the main process, and no later."""
    script = f"sleep 600 & echo $! > {place.mark('child')}; exit 4"
    server = session.call("spawn", name="a", launch=place.launch(["bash", "-c", script]))["server"]
    mark = place.seen_marks / "child"
    child = int(until(lambda: mark.exists() and mark.read_text()))
    until(lambda: states(session) == {"a": "exited"})
    assert lives(server["supervisor_pid"])

    os.kill(child, 9)

    assert until(lambda: not lives(server["supervisor_pid"]))


def test_every_child_that_comes_back_is_reaped(place, session) -> None:
    """A thousand short-lived orphans leave no zombie."""
    script = "for i in $(seq 1 200); do (true & (true &)); done; exec sleep 600"
    server = session.call("spawn", name="a", launch=place.launch(["bash", "-c", script]))["server"]
    supervisor = server["supervisor_pid"]

    def children() -> str:
        return Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().strip()

    assert until(lambda: title(server["pid"]) == "sleep 600")
    assert until(lambda: children() == str(server["pid"]))


def title(pid: int) -> str:
    """A process's command line."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()


@pytest.fixture
def cramped(tmp_path: Path, small_disk: Path) -> Iterator[Place]:
    """This machine with its state on a disk of 1 MiB."""
    place = local_place(tmp_path, LocalTransport())
    place.state_home, place.seen_home = str(small_disk / "state"), small_disk / "state"
    yield place
    place.close()


def fill(folder: Path) -> None:
    """Writes until nothing more can be written."""
    with (folder / "ballast").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return


def test_a_full_disk_does_not_swallow_an_exit_status(cramped) -> None:
    """The room for it was taken when there was some; stop works too."""
    session = cramped.session()
    launch = cramped.launch(["bash", "-c", "read -t 600 < <(sleep 600); exit 9"])
    mark = cramped.mark("trapped")
    script = f"trap 'exit 9' TERM; echo > {mark}; sleep 600 & wait"
    dies = cramped.launch(["bash", "-c", script])
    session.call("spawn", name="a", launch=launch)
    session.call("spawn", name="b", launch=dies)
    assert until(lambda: states(session)["a"] == states(session)["b"] == "ready")
    until((cramped.seen_marks / "trapped").exists)
    fill(cramped.seen_home)

    assert session.call("stop", name="a", grace_s=1)["left"] == []
    stopped = session.call("stop", name="b", grace_s=60)["server"]

    assert (stopped["state"], stopped["exit_status"], stopped["signal"]) == ("exited", 9, None)
    assert states(session) == {"a": "exited", "b": "exited"}
    record = (cramped.folder("b") / "exit.json").read_text()
    assert json.loads(record)["exit_status"] == 9


def test_a_launch_on_a_full_disk_is_refused_without_a_trace(cramped) -> None:
    """The reason is the disk's, and no process is left."""
    session = cramped.session()
    session.call("spawn", name="a", launch=cramped.launch(["true"]))
    until(lambda: states(session) == {"a": "exited"})
    before = sorted(str(path) for path in cramped.folder("a").rglob("*"))
    fill(cramped.seen_home)

    for name in ("a", "new"):
        with pytest.raises(OperationFailed) as refused:
            session.call("spawn", name=name, launch=cramped.launch(["sleep", "600"]))
        assert refused.value.kind == "spawn_failed"
        assert refused.value.problem.endswith("No space left on device")

    assert sorted(str(path) for path in cramped.folder("a").rglob("*")) == before
    assert not cramped.folder("new").exists()
    assert of_launches(cramped.launch_ids, cramped.state_home) == []


def test_a_supervisor_that_dies_at_once_leaves_a_server_on_record(place, session) -> None:
    """There is no moment in which a server runs that nobody knows of."""
    for round_ in range(10):
        server = session.call("spawn", name=f"n{round_}", launch=place.launch(["sleep", "600"]))[
            "server"
        ]
        os.kill(server["supervisor_pid"], 9)

    found = session.call("servers")["servers"]

    assert {server["state"] for server in found} == {"lost"}
    assert all(server["tree"] == [server["pid"]] for server in found)
