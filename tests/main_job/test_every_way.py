"""The main job, the same by every way in: local, SSH, SSH and pct."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import pytest

from eagleops.errors import LinkLost, OperationFailed
from eagleops.machine import Machine
from eagleops.workflows.doctor import doctor
from eagleops.workflows.launch import launch
from eagleops.workflows.logs import logs
from eagleops.workflows.progress import Step
from eagleops.workflows.reset import reset
from eagleops.workflows.status import status
from eagleops.workflows.stop import stop
from eagleops.workflows.verify import verify
from parts.poll import until

WAYS = ["local", "ssh", "pct"]
Make = Callable[..., object]


@pytest.mark.parametrize("way", WAYS)
def test_the_main_job(make_place: Make, way: str) -> None:
    """Doctor, reset, launch, verify, status, logs, stop: each does what it says it did."""
    place = make_place(way)
    machine: Machine = place.machine

    assert {check.id: check.state for check in doctor(machine).checks}["gpus"] == "pass"
    assert reset(machine).ok
    launched = launch(machine, place.profile)
    assert launched.ok
    assert launched.server.state == "ready"
    assert launched.environment.counts == {"ok": 12, "wrong": 0, "missing": 0, "unknown": 0}

    seen = status(machine)
    assert [(one.name, one.state) for one in seen.servers] == [("baseline", "ready")]
    assert [gpu.used_mib > 1000 for gpu in seen.gpus] == [True, True]
    assert len(seen.holders) == 2
    assert any("fired up and ready to roll" in line for line in logs(machine, "baseline"))
    assert verify(machine, name="baseline").ok

    stopped = stop(machine, "baseline")
    assert stopped.ok
    assert stopped.server.state == "exited"
    assert [gpu.used_mib for gpu in place.box.read_gpus()] == [0, 0]


@pytest.mark.parametrize("way", WAYS)
def test_one_exec_a_target(make_place: Make, way: str) -> None:
    """Reset, launch to ready, verification, status and stop start one process over there."""
    place = make_place(way)

    launch(place.machine, place.profile)
    status(place.machine)
    stop(place.machine, "baseline")

    assert len(place.transport.started) == 1


@pytest.mark.parametrize("way", ["ssh", "pct"])
def test_a_server_outlives_the_link(make_place: Make, way: str) -> None:
    """Killing the sshd that serves us, mid-wait, loses the wait and not the server."""
    place = make_place(way, start_s=2.0)
    launch(place.machine, place.profile, wait=False)

    def kill_the_link(_event: object) -> None:
        place.sshd.kill_connections()

    with pytest.raises(LinkLost) as lost:
        place.machine.call("watch", name="baseline", timeout_s=60, on_event=kill_the_link)
    assert "the outcome is unknown" in lost.value.problem

    other = place.again()
    until(lambda: other.call("servers")["servers"][0]["state"] == "ready")
    other.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_launch_finds_the_server_that_lives(make_place: Make, way: str) -> None:
    """A second launch of a name is refused by name, state and PID, and kills nothing."""
    place = make_place(way)
    first = launch(place.machine, place.profile)

    with pytest.raises(OperationFailed) as refused:
        launch(place.again(), place.profile)

    assert refused.value.kind == "server_exists"
    expected = f"a server baseline is ready (PID {first.server.pid})"
    assert refused.value.problem == expected
    assert status(place.machine).servers[0].launch_id == first.server.launch_id


@pytest.mark.parametrize("way", WAYS)
def test_a_reset_ends_what_a_dead_launcher_left(make_place: Make, way: str) -> None:
    """Workers whose server was killed hold memory; a reset ends them and proves the drain."""
    place = make_place(way, orphans=True)
    machine: Machine = place.machine
    main = launch(machine, place.profile).server.pid
    machine.call("kill", targets=[{"pid": main, "start_ticks": _start(machine, main)}], grace_s=0)
    until(lambda: status(machine).servers[0].state == "exited")

    planned = reset(machine, dry_run=True)
    assert len(planned.killed) >= 2
    assert all("baseline" in judgement.reason for judgement in planned.killed)
    assert status(machine).holders

    done = reset(machine)
    assert done.ok
    assert {one.process.pid for one in done.killed} == {one.process.pid for one in planned.killed}
    assert not status(machine).holders


def _start(machine: Machine, pid: int) -> int:
    for process in machine.call("snapshot")["processes"]:
        if process["pid"] == pid:
            ticks: int = process["start_ticks"]
            return ticks
    raise AssertionError(pid)


@pytest.mark.alone
def test_a_drain_is_noticed_within_100_ms_of_the_true_release(make_place: Make) -> None:
    """The first of the settled readings comes at most 100 ms after the box's memory was free."""
    place = make_place("local")
    lags_ms = []
    for _ in range(5):
        launch(place.machine, place.profile)
        began_s: list[float] = []

        def note(step: Step, began_s: list[float] = began_s) -> None:
            if step == Step("drain"):
                began_s.append(time.monotonic())

        # Killed at once, so that the drain is being watched when the memory is released.
        done = reset(place.machine, grace_s=0.0, progress=note)
        noticed_s = began_s[0] + done.drain.drain_s
        freed_s = max(release.released_s for release in place.box.releases())
        lags_ms.append((noticed_s - freed_s) * 1000)
    print(f"drain noticed after {[round(lag) for lag in sorted(lags_ms)]} ms")
    assert sorted(lags_ms)[len(lags_ms) // 2] < 100


def test_ten_launches_of_one_name_give_one_server(commands: Callable[..., object]) -> None:
    """Ten clients at once: one server, nine errors that name the other launch or its server."""
    started = [commands.start("launch", "--json") for _ in range(10)]
    answers = [(process.communicate(timeout=300), process.returncode) for process in started]

    statuses = sorted(status for _, status in answers)
    assert statuses == [0, *[1] * 9], [out for (out, _), _ in answers]
    kinds = {_kind(stdout) for (stdout, _), status in answers if status}
    assert kinds <= {"launch_in_progress", "server_exists"}
    servers = commands("status", "--json").document["servers"]
    assert [server["state"] for server in servers] == ["ready"]


def _kind(stdout: str) -> str:
    import json

    kind: str = json.loads(stdout)["error"]["kind"]
    return kind


def test_a_server_outlives_sigkill_of_its_client(commands: Callable[..., object]) -> None:
    """SIGKILL of the client during the wait: a later status finds the server, and ready."""
    commands.write(sim="{start_s: 6.0, warmup_s: 0.1}")
    client: subprocess.Popen[str] = commands.start("launch", "--json")
    until(commands.has_begun)
    client.kill()
    client.communicate()

    until(lambda: _states(commands) == ["ready"], interval_s=0.2)
    assert commands("verify-env", "--json").document["ok"]


def _states(commands: Callable[..., object]) -> list[str]:
    return [one["state"] for one in commands("status", "--json").document["servers"]]
