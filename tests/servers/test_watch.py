"""Operation ``watch``: ready, dead or out of time, noticed at once and never mistaken."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from parts.poll import until
from servers.places import MODEL, readiness, states

# The promise is 200 and 100 ms; a busy test machine gets room, the typical figure does not.
READY_NOTICED_S = 0.2
DEATH_NOTICED_S = 0.1


def watched(session, name: str = "a", **settings) -> tuple[dict, list[tuple[float, dict]]]:
    """The result of a watch, and its events with the time at which they came."""
    events: list[tuple[float, dict]] = []
    result = session.call(
        "watch", name=name, on_event=lambda e: events.append((time.time(), e)), **settings
    )
    return result, events


def when(events: list[tuple[float, dict]], state: str) -> float:
    """When a state was told."""
    return next(at for at, event in events if event.get("state") == state)


def start(place, session, engine: str, *arguments: object, **fields) -> dict:
    """Spawns a serving engine as ``a``."""
    launch = place.serving(engine, *arguments, "--mark", place.mark("m"), **fields)
    server: dict = session.call("spawn", name="a", launch=launch)["server"]
    return server


@pytest.mark.alone
def test_ready_is_noticed_at_once(any_place, record_property) -> None:
    """From the engine's own mark to the event: less than 200 ms, by every way in."""
    session = any_place.session()
    start(any_place, session, "plain", "--workers", 2, "--load-s", 0.6)

    result, events = watched(session, timeout_s=60)

    ready_at = next(at for at, what in any_place.read_marks("m") if what == "ready")
    noticed_s = when(events, "ready") - ready_at
    record_property("noticed_s", noticed_s)
    print(f"ready noticed after {noticed_s * 1000:.0f} ms")
    assert (result["outcome"], result["detail"], result["server"]["state"]) == (
        "ready",
        "",
        "ready",
    )
    assert 0 < noticed_s < READY_NOTICED_S
    assert 0.6 < result["ready_s"] < 20
    assert result["server"]["ready_s"] == result["ready_s"]
    assert len(result["server"]["tree"]) >= 3
    assert "The server is fired up and ready to roll!" in result["log_tail"]
    details = [event["detail"] for _, event in events if event["event"] == "state"]
    assert details[-2:] == ["/health_generate answers 503", ""]
    assert f"nothing listens on port {result['server']['port']} yet" in details


def test_a_second_watch_of_a_ready_server_asks_it_nothing(place, session) -> None:
    """Its ready.json tells, and the time that it took the first time: it need not even answer."""
    server = start(place, session, "plain")
    first, _ = watched(session)
    os.kill(server["pid"], signal.SIGSTOP)

    again, _ = watched(session, timeout_s=60)

    assert (again["outcome"], again["ready_s"]) == ("ready", first["ready_s"])


@pytest.mark.alone
def test_death_is_noticed_at_once_with_the_last_words(any_place) -> None:
    """Exit status, the traceback, and even a last line without an end."""
    session = any_place.session()
    start(any_place, session, "dies", "--load-s", 0.5)

    result, events = watched(session, timeout_s=60)

    noticed_s = when(events, "exited") - any_place.read_marks("m")[0][0]
    print(f"death noticed after {noticed_s * 1000:.0f} ms")
    assert (result["outcome"], result["detail"]) == ("died", "ended with status 3")
    server = result["server"]
    assert (server["state"], server["exit_status"], server["signal"]) == ("exited", 3, None)
    assert result["log_tail"] == [
        "Traceback (most recent call last):",
        "RuntimeError: Not enough memory.",
        "the last words, with no end of line",
    ]
    # From the mark to the end the engine still writes its last words.
    assert noticed_s < DEATH_NOTICED_S


def test_a_death_by_signal_has_its_name(place, session) -> None:
    """The signal and no exit status."""
    start(place, session, "dies", "--how", "signal", "--load-s", 0.2)

    result, _ = watched(session, timeout_s=60)

    server = result["server"]
    assert (result["outcome"], result["detail"]) == ("died", "ended by SIGKILL")
    assert (server["exit_status"], server["signal"]) == (None, "SIGKILL")


def test_a_slow_probe_does_not_hide_a_death(place, session) -> None:
    """While /health_generate takes its 600 s, the end of the process is told."""
    start(place, session, "dies", "--serving", "--slow-probe-s", 600, "--load-s", 1.5)

    result, _ = watched(session, timeout_s=60)

    assert result["outcome"] == "died"


def test_a_slow_probe_of_a_ready_server_is_waited_for(place, session) -> None:
    """An answer that takes 1.2 s, as SGLang's does, is an answer."""
    start(place, session, "plain", "--slow-probe-s", 1.2)

    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"


def test_time_out_is_a_result_and_the_server_lives_on(place, session) -> None:
    """A server that never listens is left running, and what it last said is told."""
    server = start(place, session, "plain", "--never")
    until(lambda: "Load weight begin." in (place.folder("a") / "server.log").read_text())

    begun = time.monotonic()
    result, _ = watched(session, timeout_s=0.7)

    assert result["outcome"] == "timeout"
    assert result["detail"] == f"nothing listens on port {server['port']} yet"
    assert result["log_tail"] == ["Load weight begin."]
    assert time.monotonic() - begun >= 0.7
    assert states(session) == {"a": "starting"}


def test_the_requests_own_time_limit_is_a_time_out_too(place, session) -> None:
    """The operation answers before the limit ends it."""
    start(place, session, "plain", "--never")

    result, _ = watched(session, time_limit_s=0.5)

    assert result["outcome"] == "timeout"


def test_another_model_is_not_ready(place, session) -> None:
    """A server that answers and serves something else is refused, with both names."""
    server = start(place, session, "plain", "--model", "/models/wrong")

    with pytest.raises(OperationFailed) as refused:
        watched(session, timeout_s=60)

    assert refused.value.kind == "wrong_model"
    assert refused.value.problem == f"a serves /models/wrong, expected {MODEL}"
    assert refused.value.data == {
        "expected": MODEL,
        "seen": ["/models/wrong"],
        "port": server["port"],
    }
    assert states(session) == {"a": "starting"}


def test_a_model_is_found_in_the_openai_list_too(place, session, port) -> None:
    """``data.*.id`` looks at every entry."""
    identity = {"paths": ["/v1/models"], "field": "data.*.id", "equals": MODEL}
    launch = place.serving("plain", port=port)
    launch["readiness"] = readiness(port, identity=identity)
    session.call("spawn", name="a", launch=launch)

    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"


def test_a_server_that_keeps_its_model_to_itself_is_ready_and_that_is_told(place, session) -> None:
    """With an API key these paths answer 401; who listens is known all the same."""
    start(place, session, "plain", "--silent-model")

    result, _ = watched(session, timeout_s=60)

    assert (result["outcome"], result["detail"]) == (
        "ready",
        "it does not tell its model (status 404)",
    )


def test_a_stale_twin_on_the_port_is_found(place, session, port) -> None:
    """With SO_REUSEPORT both listen and either may answer: that is no ready server."""
    start(place, session, "plain", "--reuse-port", "--bind-after-s", 0.5, port=port)
    with socket.socket() as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        twin.bind(("127.0.0.1", port))
        twin.listen()

        with pytest.raises(OperationFailed) as refused:
            watched(session, timeout_s=60)

        assert refused.value.kind == "port_shared"
        assert refused.value.data["pid"] == os.getpid()
        title = Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
        assert refused.value.data["title"] == title.strip()
        assert refused.value.problem.startswith(f"PID {os.getpid()} (")
        assert refused.value.problem.endswith(
            f") listens on port {port} too: what answers there may not be a"
        )
        assert states(session) == {"a": "starting"}
    assert until(lambda: states(session) == {"a": "ready"})


def test_a_twin_that_cannot_be_seen_is_found_all_the_same(contained_place, port) -> None:
    """A container that shares the host's network cannot see whose socket it is: a stranger's."""
    session = contained_place.session()
    start(contained_place, session, "plain", "--reuse-port", "--bind-after-s", 0.5, port=port)
    with socket.socket() as twin:
        twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        twin.bind(("127.0.0.1", port))
        twin.listen()

        with pytest.raises(OperationFailed) as refused:
            watched(session, timeout_s=60)

    assert refused.value.problem == (
        f"a process of root that cannot be seen from here listens on port {port} too: "
        "what answers there may not be a"
    )
    assert refused.value.way_out == (
        "End it, then stop a and launch it again (eagleops stop --name a)."
    )
    assert refused.value.data["pid"] is None


def test_a_server_on_another_address_is_asked_there(place, session) -> None:
    """The address that it listens on is looked up, not assumed."""
    start(place, session, "plain", "--address", "127.0.0.9")

    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"


def test_a_server_on_ipv6_and_ipv4_is_ready(place, session) -> None:
    """0.0.0.0 is reached through loopback."""
    start(place, session, "plain", "--address", "0.0.0.0")

    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"


def test_a_command_without_a_port_is_ready_once_it_has_lived_a_second(place, session) -> None:
    """And dies like any other if it does not."""
    session.call("spawn", name="lives", launch=place.launch(["sleep", "600"]))
    session.call("spawn", name="dies", launch=place.launch(["sh", "-c", "exit 5"]))
    until(lambda: states(session)["dies"] == "exited")

    lives, _ = watched(session, "lives", timeout_s=60)
    dies, _ = watched(session, "dies", timeout_s=60)

    assert lives["outcome"] == "ready"
    assert lives["ready_s"] >= 1.0
    assert (dies["outcome"], dies["server"]["exit_status"]) == ("died", 5)


CLIENT = """
    import sys
    from eagleops.session import Session
    from eagleops.transport.local import LocalTransport
    session = Session.open(
        LocalTransport(), python=sys.executable, options={"state_home": sys.argv[1]}
    )
    for event in session.stream("watch", name="a"):
        print(event["event"], flush=True)
"""


def test_a_client_that_dies_while_it_waits_changes_nothing(place, session) -> None:
    """SIGKILL to the client: the server lives, and is found ready by whoever looks next."""
    loaded = place.seen_marks / "loaded"
    server = start(place, session, "plain", "--ready-when", loaded)
    client = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CLIENT), place.state_home], stdout=subprocess.PIPE
    )
    assert client.stdout.readline() != b""

    client.kill()
    client.wait()
    client.stdout.close()
    loaded.touch()

    assert until(lambda: states(session) == {"a": "ready"})
    found = session.call("servers")["servers"][0]
    assert (found["pid"], found["ready_s"]) == (server["pid"], None)
    assert (
        json.loads((place.folder("a") / "ready.json").read_text())["launch_id"]
        == (server["launch_id"])
    )
    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"


def test_a_watch_that_is_called_off_leaves_the_server(place, session) -> None:
    """Closing the stream ends the operation, not the server."""
    start(place, session, "plain", "--load-s", 0.8)
    stream = session.stream("watch", name="a")
    next(stream)

    stream.close()

    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"


@pytest.mark.alone
def test_a_flood_of_log_holds_nothing_up(place, session) -> None:
    """100 MB of log: the last lines are shown, what was skipped is said, ready is noticed."""
    start(place, session, "chatty", "--what", "flood")

    result, events = watched(session, timeout_s=60, log_lines=5)

    ready_at = next(at for at, what in place.read_marks("m") if what == "ready")
    shown = [event for _, event in events if event["event"] == "log"]
    assert result["outcome"] == "ready"
    assert when(events, "ready") - ready_at < 1.0
    assert max(len(event["lines"]) for event in shown) <= 5
    assert len(result["log_tail"]) <= 400
    assert result["log_tail"][-1] == "no end of line yetThe server is fired up and ready to roll!"


def test_lines_of_any_length_and_bytes_are_shown(place, session) -> None:
    """10 MB without an end are cut, a progress bar shows its last state, bytes are replaced."""
    start(place, session, "chatty", "--what", "long_lines", "--load-s", 0.3)

    result, _ = watched(session, timeout_s=60)

    assert result["log_tail"][-3:] == [
        "Loading: 100%",
        "not UTF-8: \ufffd\ufffd",
        "no end of line yetThe server is fired up and ready to roll!",
    ]
    assert max(map(len, result["log_tail"])) < 5000


def test_an_engine_that_reopens_its_stdout_loses_no_line(place, session) -> None:
    """The log is appended to by whoever holds it."""
    start(place, session, "chatty", "--what", "reopen")

    result, _ = watched(session, timeout_s=60)

    assert result["log_tail"][:2] == [
        "written while stdout was closed",
        "written after stdout was opened again",
    ]


def test_secrets_in_a_log_are_not_shown(place, session) -> None:
    """SGLang prints its whole settings, keys too."""
    text = "server_args=ServerArgs(model_path='/m', api_key='sesame-1', max_total_tokens=4096)"
    session.call("spawn", name="a", launch=place.launch(["sh", "-c", f'echo "{text}"; sleep 600']))

    result, _ = watched(session, timeout_s=60)

    assert result["log_tail"] == [
        "server_args=ServerArgs(model_path='/m', api_key='<redacted>', max_total_tokens=4096)"
    ]


def test_a_server_that_nobody_launched_is_told_with_those_that_were(place, session) -> None:
    """The names that there are help who mistyped one."""
    session.call("spawn", name="baseline", launch=place.launch(["sleep", "600"]))

    with pytest.raises(OperationFailed) as refused:
        watched(session, "baselin")

    assert refused.value.kind == "no_such_server"
    assert refused.value.problem == "no server baselin was launched here"
    assert refused.value.way_out == "Launched here: baseline."


def test_a_lost_server_can_still_be_watched(place, session) -> None:
    """Its supervisor is gone; it becomes ready, or dies and nobody knows how."""
    server = start(place, session, "plain", "--load-s", 0.5)
    os.kill(server["supervisor_pid"], signal.SIGKILL)
    assert until(lambda: states(session) == {"a": "lost"})

    assert watched(session, timeout_s=60)[0]["outcome"] == "ready"

    os.kill(server["pid"], signal.SIGKILL)
    # A process that is being killed lives for a moment, and is still ready.
    assert until(lambda: session.call("servers")["servers"][0]["tree"] == [])
    result, _ = watched(session, timeout_s=60)
    assert (result["outcome"], result["detail"]) == (
        "died",
        "it ended, and nothing recorded how",
    )
