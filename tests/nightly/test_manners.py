"""A night's manners: nobody who uses a GPU is disturbed, and what ran before runs again."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import attrs
import pytest

from eagleops.errors import EagleError
from eagleops.library import load
from eagleops.nights.store import NightStore
from eagleops.workflows.nightly.holding import held
from eagleops.workflows.progress import Step
from nightly.boxes import Boxes, at, found, states
from parts.poll import until
from parts.reserved import free_port


def test_gpus_that_somebody_uses_are_left_alone(boxes: Boxes) -> None:
    """`skip`: what needs idle GPUs is skipped with the holder named, and nobody is ended."""
    library = boxes.open("profiles: [baseline], commands: {own: {run: ['true']}}")
    user = boxes.use_gpu()

    report = library.nightly().run()

    busy = found(report, "busy")
    assert busy.state == "skip"
    assert f"PID {user.pid} (" in busy.message
    assert "ends nobody's work" in busy.message
    assert [holder["pid"] for holder in busy.facts["holders"]] == [user.pid]
    assert found(report, "launch:baseline").state == "skip"
    assert found(report, "command:own").state == "skip"
    assert found(report, "temperature").state == "skip"
    assert found(report, "disk").state == "pass"
    assert user.poll() is None
    assert (report.exit_status, report.changed) == (0, False)


def test_a_command_that_needs_no_gpu_is_run_beside_whoever_uses_them(boxes: Boxes) -> None:
    """`needs_idle_gpus: no`: it is run, and the one that needs them is skipped."""
    own = "own: {run: ['true'], needs_idle_gpus: no}, other: {run: ['true']}"
    library = boxes.open(f"profiles: [], commands: {{{own}}}")
    user = boxes.use_gpu()

    report = library.nightly().run()

    assert found(report, "command:own").state == "pass"
    assert found(report, "command:other").state == "skip"
    assert user.poll() is None


def test_no_server_is_stopped_for_a_command_that_needs_no_gpu(boxes: Boxes) -> None:
    """With `restore` as well: it is the very launch that ran before."""
    own = "commands: {own: {run: ['true'], needs_idle_gpus: no}}"
    library = boxes.open(f"profiles: [], restore: true, {own}")
    server = library.host("sim").launch(library.profile("second"), verify=False)
    before = server.facts().launch_id

    report = library.nightly().run()

    assert found(report, "command:own").state == "pass"
    assert found(report, "busy").state == "skip"
    assert server.facts().launch_id == before


@pytest.mark.parametrize("busy", ["skip", "wait", "force"])
def test_a_job_on_other_gpus_than_the_profile_s_keeps_nothing_from_being_measured(
    boxes: Boxes, busy: str
) -> None:
    """`gpus: [1]` while somebody uses GPU 0: measured, and nobody is disturbed."""
    boxes.gpus = 2
    library = boxes.open(f"profiles: [baseline], busy: {busy}, wait_limit_s: 1", uses="[1]")
    user = boxes.use_gpu(0)

    report = library.nightly().run()

    assert found(report, "speed:baseline").state == "pass"
    assert found(report, "busy").message == "nobody uses GPU 1"
    assert found(report, "temperature").state == "skip"
    assert user.poll() is None
    assert boxes.servers() == {}


def test_force_does_not_end_what_other_gpus_do(boxes: Boxes) -> None:
    """A reset ends all that it may: who uses a GPU that no profile asks for is worth more."""
    boxes.gpus = 2
    library = boxes.open("profiles: [baseline], busy: force", uses="[1]")
    users = [boxes.use_gpu(0), boxes.use_gpu(1)]

    report = library.nightly().run()

    assert found(report, "launch:baseline").state == "skip"
    assert f"would end PID {users[0].pid} (" in found(report, "busy").message
    assert [user.poll() for user in users] == [None, None]


def test_only_the_server_on_the_profile_s_gpus_is_stopped(boxes: Boxes) -> None:
    """`restore` with `gpus: [1]`: a server on GPU 0 serves on."""
    boxes.gpus = 2
    library = boxes.open("profiles: [baseline], restore: true", uses="[1]")
    elsewhere = attrs.evolve(library.profile("second"), gpus=(0,))
    server = library.host("sim").launch(elsewhere, name="elsewhere", verify=False)
    before = server.facts().launch_id

    report = library.nightly().run()

    assert found(report, "speed:baseline").state == "pass"
    assert server.facts().launch_id == before


def test_it_waits_until_the_gpus_are_free(boxes: Boxes) -> None:
    """`wait`: the holder ends by himself, and the profile is measured."""
    library = boxes.open("profiles: [baseline], busy: wait, wait_limit_s: 60")
    user = boxes.use_gpu()

    report = library.nightly().run(progress=at("wait", user.kill))

    assert found(report, "speed:baseline").state == "pass"
    assert found(report, "busy").state == "pass"


def test_it_does_not_wait_for_ever(boxes: Boxes) -> None:
    """`wait`: after its limit what needs the GPUs is skipped, and nobody was ended."""
    library = boxes.open("profiles: [baseline], busy: wait, wait_limit_s: 1.5")
    user = boxes.use_gpu()

    report = library.nightly().run()

    assert "s of waiting" in found(report, "busy").message
    assert found(report, "launch:baseline").state == "skip"
    assert user.poll() is None


def test_somebody_who_comes_between_the_look_and_the_launch_is_left_alone(boxes: Boxes) -> None:
    """The start itself refuses GPUs that are in use by then: skipped, not failed."""
    library = boxes.open()
    take = lambda: boxes.box().break_gpu(0, foreign_mib=5000)  # noqa: E731

    report = library.nightly().run(progress=at("spawn", take))

    assert found(report, "launch:baseline").state == "skip"
    assert "GPUs are in use" in found(report, "busy").message
    assert report.exit_status == 0


@pytest.mark.parametrize("stage", ["ready", "bench"])
def test_somebody_who_takes_the_gpus_from_a_night_has_them(boxes: Boxes, stage: str) -> None:
    """A person's launch ends the night's server: that is no fault of the profile."""
    library = boxes.open(sim="fail: hang" if stage == "ready" else "")
    take = lambda: library.host("sim").launch(library.profile("second"), verify=False)  # noqa: E731

    report = library.nightly().run(progress=at(stage, take))

    assert "server second (ready" in found(report, "busy").message
    assert report.exit_status == 0
    assert boxes.servers() == {"second": "ready"}


def test_a_server_that_answers_at_this_moment_is_left_alone(boxes: Boxes) -> None:
    """`restore` stops no server whose GPUs are at work."""
    library = boxes.open("profiles: [baseline], restore: true")
    server = library.host("sim").launch(library.profile("second"), name="mine")
    generating = threading.Event()

    def tell(step: Step) -> None:
        if step.stage == "bench" and step.event:
            generating.set()

    def ask() -> None:
        with contextlib.suppress(EagleError):  # the test ends it in the middle
            server.bench(runs=1, tokens=200000, warmups=0, sample=False, progress=tell)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    assert generating.wait(60)

    report = library.nightly().run()

    assert "mine works at this moment" in found(report, "busy").message
    assert boxes.servers() == {"mine": "ready"}
    server.stop(grace_s=0.1)
    asking.join(60)


def test_force_ends_what_a_reset_may_end(boxes: Boxes) -> None:
    """`force`: the holder is ended, and the profile is measured."""
    library = boxes.open("profiles: [baseline], busy: force")
    user = boxes.use_gpu()

    report = library.nightly().run()

    assert user.wait(60) != 0
    assert found(report, "speed:baseline").state == "pass"


def test_force_never_ends_memory_that_another_container_holds(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`force`: memory that nobody here holds cannot be freed: told, skipped, left alone."""
    monkeypatch.setattr("eagleops.workflows.nightly.visit.SETTLE_S", 1.0)
    library = boxes.open("profiles: [baseline], busy: force")
    boxes.box().break_gpu(0, foreign_mib=5000)

    report = library.nightly().run()

    assert found(report, "launch:baseline").state == "skip"
    assert found(report, "busy").state == "skip"
    assert found(report, "idle-memory").state == "fail"
    assert found(report, "idle-memory").value > 4000


def test_a_server_that_serves_is_left_alone_unless_told_otherwise(boxes: Boxes) -> None:
    """Without `restore` a living server of eagleops is somebody's use of the GPUs."""
    library = boxes.open()
    library.host("sim").launch(library.profile("second"))

    report = library.nightly().run()

    assert "second serves, and `restore` is not set" in found(report, "busy").message
    assert found(report, "launch:baseline").state == "skip"
    assert boxes.servers() == {"second": "ready"}


@pytest.mark.parametrize("recorded", [True, False], ids=["from its run", "from its profile"])
def test_what_ran_before_runs_again(boxes: Boxes, recorded: bool) -> None:
    """`restore`: it is stopped, the profile is measured, and it is ready again afterwards."""
    library = boxes.open("profiles: [baseline], restore: true")
    host = library.host("sim")
    before = host.launch(library.profile("second"), name="mine", record=recorded).facts()

    report = library.nightly().run()

    assert found(report, "speed:baseline").state == "pass"
    assert found(report, "temperature").state == "pass"
    restored = found(report, "restore:mine")
    assert restored.state == "pass"
    assert restored.run_id is not None
    assert boxes.servers() == {"mine": "ready"}
    now = host.server("mine").facts()
    assert now.launch_id != before.launch_id
    assert (now.profile, now.port) == (before.profile, before.port)
    assert report.night.journal == {}


def test_a_server_that_is_merely_called_like_a_night_s_is_its_owner_s(boxes: Boxes) -> None:
    """A profile `nightly-mine` of the user's own: its server is left alone."""
    file = boxes.write()
    file.write_text(file.read_text().replace("  second:", "  nightly-mine:"))
    with load(file) as library:
        server = library.host("sim").launch(library.profile("nightly-mine"), verify=False)

        report = library.nightly().run()

        assert "nightly-mine serves" in found(report, "busy").message
        assert found(report, "launch:baseline").state == "skip"
        assert server.facts().state == "ready"
        server.stop(grace_s=0.1)


def test_a_server_that_cannot_be_started_again_is_not_stopped(boxes: Boxes) -> None:
    """Its launch is in no ledger here, and hosts.yaml has no such profile: it is left alone."""
    library = boxes.open("profiles: [baseline], restore: true")
    stranger = attrs.evolve(library.profile("second"), name="stranger")
    library.host("sim").launch(stranger, record=False)

    report = library.nightly().run()

    assert "could not be started again" in found(report, "busy").message
    assert boxes.servers() == {"stranger": "ready"}


def test_a_server_whose_profile_is_another_by_now_is_not_stopped(boxes: Boxes) -> None:
    """Its launch is in no ledger, and today's profile would start it on another port."""
    library = boxes.open()
    launched = library.host("sim").launch(library.profile("second"), record=False, verify=False)
    before = launched.facts()
    boxes.other_port = free_port()

    report = boxes.night("profiles: [baseline], restore: true")

    assert "could not be started again" in found(report, "busy").message
    assert launched.facts().launch_id == before.launch_id


def test_a_server_that_cannot_be_restored_is_told_with_the_command_to_type(boxes: Boxes) -> None:
    """It is started and dies: `restore` fails, with what a person can do."""
    library = boxes.open("profiles: [baseline], restore: true")
    host = library.host("sim")
    run_id = host.launch(library.profile("second")).report.run_id
    # The box has changed meanwhile: another program listens on the server's port.
    with contextlib.ExitStack() as stack:

        def take_port() -> None:
            stack.enter_context(socket.create_server(("127.0.0.1", boxes.other_port)))

        report = library.nightly().run(progress=at("$ nightly: sim: start second again", take_port))

    failed = found(report, "restore:second")
    assert failed.state == "fail"
    assert "ran before the night and does not now" in failed.message
    assert f"eagleops reproduce --run {run_id} --host sim --name second" in failed.message
    assert report.exit_status == 1


def test_nothing_to_restore_is_no_fault(boxes: Boxes) -> None:
    """`restore` with idle GPUs passes, and ends a fault of an earlier night."""
    report = boxes.night("profiles: [baseline], restore: true")

    assert found(report, "restore").state == "pass"


def test_what_a_dead_server_left_behind_is_stale_and_cleared_away(boxes: Boxes) -> None:
    """Workers outlived their main process: told as `stale`, ended, and no use of the GPUs."""
    library = boxes.open(second="orphans: true")
    server = library.host("sim").launch(library.profile("second"))
    os.kill(server.facts().pid, 9)
    until(lambda: server.facts().state == "exited")
    left = server.facts().tree
    assert left

    report = library.nightly().run()

    assert found(report, "stale").state == "warn"
    assert any(f"PID {pid} (" in found(report, "stale").message for pid in left)
    assert found(report, "speed:baseline").state == "pass"
    assert boxes.servers() == {}


def test_two_nights_at_once_on_one_host(boxes: Boxes) -> None:
    """The second client touches nothing, and says whose night it met."""
    library = boxes.open()

    with held(library.host("sim").machine, "weekly", nights="/elsewhere"):
        report = library.nightly().run()

    assert list(states(report)) == ["reach", "busy"]
    assert "suite weekly" in found(report, "busy").message
    assert found(report, "busy").state == "skip"
    again = library.nightly().run()
    assert found(again, "speed:baseline").state == "pass"


def test_two_nights_at_once_of_two_real_clients(boxes: Boxes) -> None:
    """Two nights of two ledgers begin together: one measures, the other leaves the host alone."""
    file = boxes.write()
    text = file.read_text()
    other = file.with_name("other.yaml")
    other.write_text(text.replace("ledger: ledger.db", "ledger: other/ledger.db"))
    boxes.open()
    reports = {}

    def run(name: str) -> None:
        with load(file.with_name(name)) as library:
            reports[name] = library.nightly().run()

    threads = [threading.Thread(target=run, args=(n,)) for n in ("hosts.yaml", "other.yaml")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)

    measured = sorted("speed:baseline" in states(report) for report in reports.values())
    assert measured == [False, True]
    assert boxes.servers() == {}


def test_one_process_at_a_time_runs_a_suite(boxes: Boxes) -> None:
    """A second one of the same ledger is refused before it touches a host."""
    from eagleops.errors import NightsHeld

    library = boxes.open()

    with (
        NightStore.beside(boxes.folder / "ledger.db").lock("default"),
        pytest.raises(NightsHeld, match=str(os.getpid())),
    ):
        library.nightly().run()
