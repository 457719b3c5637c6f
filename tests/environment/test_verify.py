"""The workflow on launched servers: what was asked for at the launch, proved later."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagleops.engines.workers import ExpectedWorkers, expected
from eagleops.errors import OperationFailed, UsageError
from eagleops.profile import Profile
from eagleops.transport.local import LocalTransport
from eagleops.workflows.verify import verify
from environment.launched import Machine, contained, local, server, titled
from environment.programs import as_nobody, python_worker
from parts.poll import until

ASKED = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL", "NCCL_NTHREADS": "512", "SGLANG_X": "1"}
BLIND = "/proc/PID/environ is overwritten in 2 of them, so it was not used"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """This machine."""
    made = local(tmp_path / "machine", LocalTransport())
    yield made
    made.leave()


def test_a_launched_server_is_verified_by_its_record_from_another_client(machine, library) -> None:
    """What was asked for stands in the state folder; nobody needs to say it again."""
    with server(machine, titled(library, ASKED), ASKED, processes=3):
        machine.leave()
        report = verify(machine, name="baseline")
        alone = verify(machine)

    assert (report.ok, report.server, dict(report.expected)) == (True, "baseline", ASKED)
    assert [one.initial for one in report.counted] == ["overwritten", "overwritten"]
    assert report.conclusion.startswith("4 of 4 variables in effect in 2 of 2 processes")
    assert alone.conclusion == report.conclusion


def test_what_a_worker_changes_is_wrong_in_that_worker(machine, library) -> None:
    """The main process is right; the workers are not, and the story says since when."""
    plan = titled(library, ASKED)
    plan["steps"] = [["environ", "NCCL_ALGO", "Tree"], *plan["steps"], ["delete", "SGLANG_X"]]
    with server(machine, plan, ASKED, processes=3):
        report = verify(machine, name="baseline")

    assert report.exit_status == 1
    assert report.counts == {"ok": 4, "wrong": 2, "missing": 2, "unknown": 0}
    worker = report.counted[0]
    assert worker.variables["NCCL_ALGO"].verdict.why == "it is Tree"
    assert "started with Ring" in report.explain("NCCL_ALGO", worker.pid).text


def test_workers_that_should_be_there_are_missed(machine, library) -> None:
    """The record says how many; two are there and a third is not."""
    wanted = ExpectedWorkers(
        tuple(expected("scheduler", "sglang::scheduler") for _ in range(3))
    ).to_dict()
    with server(machine, titled(library, ASKED), ASKED, processes=3, expected_workers=wanted):
        report = verify(machine, name="baseline")

    assert (report.exit_status, report.counts["ok"]) == (1, 8)
    assert "1 expected worker not there: sglang::scheduler" in report.conclusion


def test_a_secret_is_verified_without_being_on_record(machine, library) -> None:
    """The state folder holds no secret, and the worker's is still compared."""
    asked = {**ASKED, "HF_TOKEN": "hf_very_secret"}
    plan = titled(library, ["NCCL_ALGO"])
    with server(machine, plan, asked, processes=3) as spawned:
        report = verify(machine, name="baseline")
        folder = Path(spawned["state_dir"])
        kept = "".join(path.read_text("utf-8", "replace") for path in folder.glob("*.json"))
    changed = {**plan, "steps": [["environ", "HF_TOKEN", "another"], *plan["steps"]]}
    with server(machine, changed, asked, processes=3):
        other = verify(machine, name="baseline")

    assert report.ok is True
    assert other.counts == {"ok": 8, "wrong": 2, "missing": 0, "unknown": 0}
    told = kept + str(report.to_dict()) + str(other.to_dict()) + other.view().to_html()
    assert "hf_very_secret" not in told


def test_nccls_log_in_the_state_folder_proves_what_was_taken(machine, library) -> None:
    """{state_dir} leads NCCL's log there, and each worker's lines are found by its PID."""
    plan = titled(library, ASKED)
    plan["steps"] = [*plan["steps"], ["nccl", 2], ["environ", "NCCL_BUFFSIZE", "4194304"]]
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "{state_dir}/nccl.%p.log"}
    with server(machine, plan, {**ASKED, **log}, processes=3):
        report = verify(machine, name="baseline")
        late = verify(machine, name="baseline", expected={"NCCL_BUFFSIZE": "4194304"})

    assert report.ok is True
    assert [one.variables["NCCL_ALGO"].verdict.proved for one in report.counted] == [True, True]
    assert report.expected["NCCL_DEBUG_FILE"].endswith("/servers/baseline/nccl.%p.log")
    assert {one.variables["NCCL_BUFFSIZE"].verdict.kind for one in late.counted} == {"wrong"}
    assert "set too late" in late.counted[0].variables["NCCL_BUFFSIZE"].verdict.why


def test_workers_that_leave_their_session_and_their_parent_belong_to_it(machine, library) -> None:
    """A double fork and setsid do not take a worker out of the tree."""
    program = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "    os.environ['NCCL_ALGO'] = 'Tree'\n"
        "print('\"found\"', flush=True)\n"
        "time.sleep(1000)\n"
    )
    argv = [sys.executable, "-c", program]
    with server(machine, {}, ASKED, processes=2, argv=argv, engine="command") as spawned:
        report = verify(machine, name="baseline")

    strays = [one for one in report.processes if one.pid != spawned["pid"]]
    assert len(report.processes) == 2
    assert strays[0].variables["NCCL_ALGO"].verdict.kind == "wrong"


def test_a_server_that_eagleops_did_not_launch_is_verified_by_its_pid(machine, library) -> None:
    """With what is expected said on the spot, or taken from a profile."""
    plan = {**titled(library, ASKED), "start": "fork"}
    profile = Profile(name="p", engine="sglang", env=ASKED, args={"tp-size": 1})
    with python_worker(Path(sys.executable), plan, {**os.environ, **ASKED}) as (main, *workers):
        said = verify(machine, pid=main.pid, expected={"NCCL_ALGO": "Ring", "NCCL_X": None})
        profiled = verify(machine, pid=main.pid, profile=profile, expected={"SGLANG_X": "2"})

    assert (said.ok, said.server) == (True, None)
    assert [one.role for one in said.counted] == ["scheduler", "scheduler"]
    assert {one.pid for one in said.counted} == {worker.pid for worker in workers}
    assert dict(profiled.expected) == {**ASKED, "SGLANG_X": "2"}
    assert profiled.counts["wrong"] == 2
    # One scheduler and one detokenizer belong to that profile; a detokenizer is not there.
    assert [worker.role for worker in profiled.missing_workers] == ["detokenizer"]


def test_what_an_engine_sets_itself_is_told_of_a_server_that_nobody_launched(machine) -> None:
    """Titles tell the engine, and its adapter what it does."""
    plan = {
        "start": "fork",
        "before": [["environ", "CUDA_DEVICE_MAX_CONNECTIONS", "8"]],
        "steps": [["title", "sglang::scheduler"]],
        "names": [],
    }
    given = {**os.environ, "CUDA_DEVICE_MAX_CONNECTIONS": "1", "SPT_NOENV": "1"}
    with python_worker(Path(sys.executable), plan, given) as (main, worker):
        report = verify(machine, pid=main.pid, expected={"CUDA_DEVICE_MAX_CONNECTIONS": "1"})

    verdict = report.counted[0].variables["CUDA_DEVICE_MAX_CONNECTIONS"].verdict
    assert [one.pid for one in report.counted] == [worker.pid]
    assert (verdict.kind, verdict.why) == ("wrong", "it is 8")
    assert any("changed by the engine: SGLang" in note for note in verdict.notes)
    assert verdict.way_out.startswith("The engine sets it itself")


def test_a_pid_without_an_expectation_is_refused_before_anything_is_asked(machine) -> None:
    """Nothing could be judged."""
    with pytest.raises(UsageError) as refused:
        verify(machine, pid=1)

    assert str(refused.value) == (
        "here: nothing is expected of PID 1\n"
        "Say what: --expect NAME=VALUE (more than once), or --profile PROFILE."
    )
    assert machine.opened == 0


def test_which_server_is_asked_when_there_are_several(machine, library) -> None:
    """And none is named when there is none."""
    with pytest.raises(OperationFailed) as nothing:
        verify(machine)
    plan = titled(library, ASKED)
    with (
        server(machine, plan, ASKED, processes=3),
        server(machine, plan, ASKED, name="other", processes=3),
        pytest.raises(OperationFailed) as which,
    ):
        verify(machine)
    with pytest.raises(OperationFailed) as ended:
        verify(machine, name="other")

    assert (nothing.value.kind, which.value.kind, ended.value.kind) == (
        "no_such_server",
        "which_server",
        "not_running",
    )
    assert which.value.problem == "which server? baseline, other"


@pytest.mark.parametrize("user", ["root", "nobody"])
@pytest.mark.parametrize("way", ["ssh", "pct"])
def test_the_same_verdicts_come_by_every_way(request, tmp_path, library, way, user) -> None:
    """Over SSH and into a container behind it; root sees all, an ordinary user its own."""
    outer = request.getfixturevalue("sshd").transport()
    if way == "ssh":
        machine = local(tmp_path / "machine", outer)
    else:
        machine = contained(request.getfixturevalue("container"), outer)
    shutil.copy(library, machine.seen / "overwrite.so")
    plan = titled(f"{machine.folder}/overwrite.so", ASKED)
    with server(machine, plan, ASKED, processes=3) as spawned:
        if user == "root":
            report = verify(machine, name="baseline")
        else:
            reader = _as_nobody(machine, way)
            report = verify(reader, pid=spawned["pid"], expected=ASKED)
            reader.leave()
    machine.leave()
    outer.close()

    if user == "root":
        assert report.ok is True
        assert report.conclusion.startswith("4 of 4 variables in effect in 2 of 2 processes")
        return
    assert (report.exit_status, report.counts["unknown"]) == (3, 8)
    verdict = report.counted[0].variables["NCCL_ALGO"].verdict
    assert (
        verdict.why == "the process belongs to uid 0, and this is uid 65534 without CAP_SYS_PTRACE"
    )
    assert verdict.way_out.startswith("enter the machine as that user")


def _as_nobody(machine: Machine, way: str) -> Machine:
    """The machine as an ordinary user sees it."""
    python = "/usr/bin/python3"
    as_nobody(machine.seen, python)
    script = f"{machine.folder}/python-as-nobody"
    return Machine(machine.name, machine.transport, machine.folder, machine.seen, script)


def test_a_process_of_a_container_is_seen_from_its_host(tmp_path, library, container) -> None:
    """Its PID is another one there, its files lie elsewhere, and NCCL's log is found."""
    inside = contained(container, LocalTransport())
    shutil.copy(library, inside.seen / "overwrite.so")
    plan = titled(f"{inside.folder}/overwrite.so", ASKED)
    plan["steps"] = [*plan["steps"], ["nccl", 2]]
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"{inside.folder}/nccl.%p.log"}
    host = local(tmp_path / "host", LocalTransport())
    with server(inside, plan, ASKED, env=log, processes=3) as spawned:
        found = until(lambda: _pid_outside(container.init_pid, spawned["pid"]))
        report = verify(host, pid=found, expected=ASKED)
    inside.leave()
    host.leave()

    assert report.ok is True
    assert [one.role for one in report.counted] == ["scheduler", "scheduler"]
    for one in report.counted:
        assert one.variables["NCCL_ALGO"].verdict.proved is True
        assert one.pid != one.variables["NCCL_ALGO"].witnesses.effective.path.split(".")[-2]


def _pid_outside(init_pid: int, inner_pid: int) -> int | None:
    """The PID here of the process that a container calls ``inner_pid``."""
    namespace = Path(f"/proc/{init_pid}/ns/pid").readlink()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "status").read_text()
            same = (entry / "ns/pid").readlink() == namespace
        except OSError:
            continue
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
        if same and int(numbers[-1]) == inner_pid:
            return int(entry.name)
    return None
