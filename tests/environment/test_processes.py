"""The operation on real process trees: what workers do to their environment, it sees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from environment.programs import c_worker, python_name, python_worker, pythons, running
from parts import needs
from parts.poll import until

OWN = Path(sys.executable)
# The picture that led people astray: asked for at start, and some changed in the process.
ASKED = {f"NCCL_{name}": "1" for name in ("AA", "BB", "CC", "DD")}
TITLE = "sglang::scheduler_TP0"


def of(reading: dict, pid: int) -> dict:
    """One process of a result."""
    return next(process for process in reading["processes"] if process["pid"] == pid)


def accounts(pid: int) -> dict[str, str]:
    """What a process's own accounts say of tracers, stops, signals, memory and the times it ran.

    Without SigQ, which counts its user's signals, and what the kernel reclaims of its memory.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    told = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    others = {"SigQ", "VmHWM", "VmRSS", "RssAnon", "RssFile", "RssShmem", "VmSwap", "VmPTE"}
    return {name: value for name, value in told.items() if name not in others}


@pytest.mark.parametrize("start", ["spawn", "fork", "forkserver"])
@pytest.mark.parametrize("python", pythons(), ids=python_name)
def test_each_way_to_start_a_worker_is_seen(read, library, python: Path, start: str) -> None:
    """Whatever the interpreter, children hold what getenv finds in them, whole or overwritten."""
    plan = {
        "start": start,
        "count": 2,
        "before": [["environ", "NCCL_BB", "2"]],
        "steps": [["overwrite", "z", TITLE], ["environ", "NCCL_CC", "3"], ["delete", "NCCL_DD"]],
        "names": list(ASKED),
        "library": library,
    }
    with python_worker(python, plan, {**os.environ, **ASKED}) as (main, *workers):
        reading = read(main.pid)

    assert len(workers) == 2
    for worker in workers:
        seen = of(reading, worker.pid)
        assert {n: seen["live"]["variables"].get(n) for n in ASKED} == worker.found
        assert worker.found == {"NCCL_AA": "1", "NCCL_BB": "2", "NCCL_CC": "3", "NCCL_DD": None}
        assert "overwritten" in seen["initial"]["state"]
        assert seen["title"] == TITLE
    assert of(reading, main.pid)["initial"]["state"] == "whole"


def test_a_title_takes_the_block_up_to_the_first_changed_variable(read) -> None:
    """What setproctitle leaves is what was changed before it: not what was asked for."""
    plan = {
        "start": "spawn",
        "steps": [["environ", "NCCL_CC", "2"], ["title", TITLE]],
        "names": list(ASKED),
    }
    with python_worker(OWN, plan, {**os.environ, **ASKED}) as (main, worker):
        reading = read(main.pid)

    seen = of(reading, worker.pid)
    assert seen["initial"]["state"] == "partly_overwritten"
    assert 0 < seen["initial"]["overwritten_bytes"] < seen["initial"]["size"]
    assert "NCCL_AA" not in seen["initial"]["variables"]
    assert seen["live"]["variables"] == {
        **{n: v for n, v in worker.found.items() if v is not None},
        **{n: v for n, v in seen["live"]["variables"].items() if n not in ASKED},
    }
    assert worker.found["NCCL_CC"] == "2"


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_spt_noenv_keeps_the_block_whole(read, start: str) -> None:
    """With SPT_NOENV=1 setproctitle leaves the environment alone."""
    plan = {"start": start, "steps": [["title", TITLE]], "names": list(ASKED)}
    with python_worker(OWN, plan, {**os.environ, **ASKED, "SPT_NOENV": "1"}) as (main, worker):
        seen = of(read(main.pid), worker.pid)

    assert (seen["title"], seen["initial"]["state"]) == (TITLE, "whole")
    assert {name: seen["initial"]["variables"].get(name) for name in ASKED} == ASKED


@pytest.mark.parametrize("order", [1, -1], ids=["change, title", "title, change"])
@pytest.mark.parametrize("change", ["environ", "putenv", "setenv"])
def test_the_order_of_title_and_change_makes_no_difference(read, order: int, change: str) -> None:
    """Python's os.environ, its os.putenv, and C's setenv, before and after a title."""
    steps = [[change, "NCCL_BB", "2"], ["title", TITLE]][::order]
    with python_worker(OWN, {"steps": steps, "names": list(ASKED)}, {**os.environ, **ASKED}) as (
        main,
    ):
        seen = of(read(main.pid), main.pid)

    assert main.found["NCCL_BB"] == "2"
    assert {n: seen["live"]["variables"].get(n) for n in ASKED} == main.found


@pytest.mark.parametrize("manner", "zsbf")
def test_a_title_in_any_manner_is_noticed(read, library: str, manner: str) -> None:
    """Zeros, blanks, nothing or the title itself behind the title: never called whole."""
    plan = {
        "steps": [["overwrite", manner, "a title much longer than the arguments ", 100]],
        "names": list(ASKED),
        "library": library,
    }
    with python_worker(OWN, plan, {**os.environ, **ASKED, "LAST": "x" * 5000}) as (main,):
        seen = of(read(main.pid), main.pid)

    assert "overwritten" in seen["initial"]["state"]
    assert {n: seen["live"]["variables"].get(n) for n in ASKED} == ASKED
    for name in ASKED:
        assert seen["initial"]["variables"].get(name) in {None, "1"}


def test_perls_title_is_noticed(read) -> None:
    """Another language, another library, the same memory."""
    perl = needs.program("perl", "perl-base")
    program = '$0 = "x" x 300; $| = 1; print "ready\\n"; <STDIN>'
    with running([perl, "-e", program], ASKED) as process:
        assert process.stdout.readline() == b"ready\n"
        seen = of(read(process.pid), process.pid)

    assert "overwritten" in seen["initial"]["state"]
    assert seen["live"]["variables"] == ASKED


def test_a_cleared_environment_is_seen_as_such(read) -> None:
    """Clearenv and unsetenv leave nothing behind that could be mistaken for a value."""
    with python_worker(OWN, {"steps": [["clearenv"]], "names": list(ASKED)}, ASKED) as (main,):
        seen = of(read(main.pid), main.pid)

    assert seen["live"]["variables"] == {}
    assert seen["initial"]["variables"] == ASKED


def test_two_hundred_workers_are_read_in_one_operation(read, library: str) -> None:
    """Each of them, with its own variables."""
    plan = {
        "start": "fork",
        "count": 200,
        "before": [["environ", "NCCL_BB", "2"]],
        "steps": [["overwrite", "z", TITLE]],
        "names": list(ASKED),
        "library": library,
    }
    with python_worker(OWN, plan, {**os.environ, **ASKED}) as (main, *workers):
        reading = read(main.pid)

    assert len(workers) == 200
    assert {process["pid"] for process in reading["processes"]} >= {one.pid for one in workers}
    for worker in workers:
        seen = of(reading, worker.pid)
        assert {n: seen["live"]["variables"].get(n) for n in ASKED} == worker.found


def test_a_zombie_is_gone_not_unknown(read) -> None:
    """It has no environment any more."""
    program = "import os, sys; p = os.fork() or os._exit(0); print(p, flush=True); input()"
    with running([OWN, "-c", program], dict(os.environ)) as process:
        child = int(process.stdout.readline())
        until(lambda: Path(f"/proc/{child}/stat").read_text().split()[2] == "Z")
        reading = read(process.pid)

    assert [one["pid"] for one in reading["processes"]] == [process.pid]
    assert reading["gone"] == [child]


def test_a_process_that_execs_all_the_time_is_never_a_mixture(build, read) -> None:
    """Each exec brings a new environment; what is told is all of one or says that it cannot."""
    mixtures, told = [], set()
    with c_worker(build("worker.c"), ["reexec"]) as worker:
        for _ in range(300):
            seen = read(worker.pid, "ONE", "OTHER")["processes"]
            for process in seen:
                first, now = process["initial"]["variables"], process["live"].get("variables")
                told.add((now or {}).get("ONE"))
                if first.get("ONE") != first.get("OTHER"):
                    mixtures.append(first)
                if now is not None and (now.get("ONE") != now.get("OTHER") or now != first):
                    mixtures.append((first, now))

    assert mixtures == []
    assert len(told) > 10


def test_processes_that_end_during_the_reading_are_told_as_gone(session) -> None:
    """A tree that dies under the reading is no error."""
    crowd = (
        "import os, sys, signal\n"
        "children = []\n"
        "for _ in range(60):\n"
        "    pid = os.fork()\n"
        "    if not pid: signal.pause()\n"
        "    children.append(pid)\n"
        "print('ready', flush=True)\n"
        "input()\n"
    )
    with running([OWN, "-c", crowd], dict(os.environ)) as process:
        process.stdout.readline()

        def kill_some(event: dict) -> None:
            assert event["processes"] == 61
            listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for pid in listed[-20:]:
                os.kill(int(pid), signal.SIGKILL)

        reading = session.call("environ", pid=process.pid, on_event=kill_some)
        again = session.call("environ", pid=process.pid)
        os.killpg(process.pid, signal.SIGKILL)

    assert len(reading["processes"]) + len(reading["gone"]) == 61
    assert (len(again["processes"]), len(again["gone"])) == (41, 20)


def test_an_unknown_process_is_a_failure_with_its_number(session) -> None:
    """PID 4194305 cannot exist."""
    with pytest.raises(OperationFailed) as failed:
        session.call("environ", pid=2**22 + 1)

    assert (failed.value.kind, failed.value.problem) == (
        "no_such_process",
        "there is no process 4194305",
    )


def test_only_the_variables_that_matter_travel(read) -> None:
    """Those that were asked for and the engines' own; the rest stays where it is."""
    given = {"HOME": "/x", "MINE": "1", "VLLM_X": "1", "SGLANG_Y": "1", "CUDA_Z": "1", "AWS": "no"}
    with python_worker(OWN, {"names": []}, given) as (main,):
        seen = of(read(main.pid, "MINE"), main.pid)

    assert set(seen["live"]["variables"]) == {"MINE", "VLLM_X", "SGLANG_Y", "CUDA_Z"}


def test_a_secret_travels_as_a_salted_digest(read) -> None:
    """Equal values can be told in one reading, and not across two."""
    secret = "hf_very_secret"
    url = f"http://me:{secret}@example.com"
    given = {"HF_TOKEN": secret, "NCCL_API_KEY": secret, "PROXY": url}
    argv_secret = ["--api-key", secret]
    with running([OWN, "-c", "input()", *argv_secret], given) as process:
        until(lambda: "live" in str(read(process.pid)))
        one, other = (read(process.pid, "HF_TOKEN", "PROXY") for _ in range(2))

    assert secret not in repr(one) + repr(other)
    first, second = (of(each, process.pid)["live"]["variables"] for each in (one, other))
    assert first["HF_TOKEN"] == first["NCCL_API_KEY"] != second["HF_TOKEN"]
    assert set(first["PROXY"]) == {"sha256"}
    assert of(one, process.pid)["argv"][-2:] == ["--api-key", "<redacted>"]


def test_nccls_log_is_joined_by_the_pid_that_the_process_has_for_itself(read, tmp_path) -> None:
    """In another PID namespace a worker is, to its log, another number."""
    needs.root("a PID namespace")
    unshare = needs.program("unshare", "util-linux")
    given = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"{tmp_path}/nccl.%p.log"}
    line = "vm:{0}:{0} [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
    program = (
        "import os, sys; "
        f"open({str(tmp_path)!r} + f'/nccl.{{os.getpid()}}.log', 'w')"
        f".write({line!r}.format(os.getpid())); print(os.getpid(), flush=True); input()"
    )
    argv = [unshare, "--pid", "--fork", "--kill-child", OWN, "-c", program]
    with running(argv, given) as process:
        assert process.stdout.readline() == b"1\n"
        reading = read(process.pid)

    inside = next(one for one in reading["processes"] if one["own_pid"] == 1)
    assert inside["pid"] != 1
    assert inside["nccl"]["path"] == f"{tmp_path}/nccl.1.log"
    assert inside["nccl"]["facts"]["read"]["NCCL_ALGO"]["values"] == ["Ring"]


def test_nccls_lines_on_stdout_are_found_where_stdout_is_a_file(read, tmp_path: Path) -> None:
    """A server that was started by hand has NCCL's lines in its log, among others."""
    log = tmp_path / "server.log"
    program = (
        "import os; p = os.getpid(); print('loading', flush=True); "
        "os.write(1, b'vm:%d:%d [0] NCCL INFO NCCL_PROTO set by environment to LL\\n' % (p, p)); "
        "input()"
    )
    with log.open("wb") as output:
        process = subprocess.Popen(
            [OWN, "-c", program], env={"NCCL_DEBUG": "INFO"}, stdin=subprocess.PIPE, stdout=output
        )
        until(lambda: b"LL" in log.read_bytes())
        seen = of(read(process.pid), process.pid)
        process.communicate(b"\n")

    assert seen["nccl"]["path"] == "its stdout"
    assert seen["nccl"]["facts"]["read"]["NCCL_PROTO"]["values"] == ["LL"]


def test_reading_leaves_no_trace_in_the_process(build, read) -> None:
    """No tracer, no stop, no signal: the process's own accounts show nothing."""
    with c_worker(build("worker.c"), (), ASKED) as told:
        until(lambda: accounts(told.pid)["State"] == "S (sleeping)")
        before = accounts(told.pid)
        for _ in range(100):
            read(told.pid)
        after = accounts(told.pid)

    assert before == after
