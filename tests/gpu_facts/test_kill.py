"""The kill operation against real processes, each one started here."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from eagleops.remote import pidfd, process_table
from eagleops.remote.context import Context
from eagleops.remote.kill import kill
from parts import needs
from parts.poll import until

STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True)\n"
STUBBORN += "while True: time.sleep(600)"


def signals(events: list) -> list:
    """The (pid, signal) pairs of the ``signalled`` events."""
    return [(e["pid"], e["signal"]) for e in events if e["event"] == "signalled"]


def test_a_process_that_heeds_sigterm_is_gone_without_sigkill(session, start):
    """SIGTERM ends it, the result says so, and it is gone before the call returns."""
    child, events = start(), []

    result = session.call("kill", targets=[child.target], on_event=events.append)

    assert [(one["pid"], one["signal"]) for one in result["killed"]] == [(child.pid, "SIGTERM")]
    assert (result["gone_already"], result["left"]) == ([], [])
    assert signals(events) == [(child.pid, "SIGTERM")]
    assert events[-1] == {"id": events[-1]["id"], "event": "gone", "pid": child.pid}
    assert child.process.wait(10) == -signal.SIGTERM
    assert result["killed"][0]["gone_s"] >= 0


def test_a_process_that_ignores_sigterm_gets_sigkill_after_the_grace(session, start):
    """SIGKILL comes after the grace period, not before it, and is what the result names."""
    child, events, begun = start(STUBBORN), [], time.monotonic()

    result = session.call("kill", targets=[child.target], grace_s=0.3, on_event=events.append)

    assert time.monotonic() - begun >= 0.3
    assert signals(events) == [(child.pid, "SIGTERM"), (child.pid, "SIGKILL")]
    assert [one["signal"] for one in result["killed"]] == ["SIGKILL"]
    assert result["killed"][0]["gone_s"] >= 0.3
    assert child.process.wait(10) == -signal.SIGKILL


def test_the_grace_is_not_waited_out_once_all_are_gone(session, start):
    """A grace of a minute costs nothing where everybody heeds SIGTERM."""
    child, begun = start(), time.monotonic()

    session.call("kill", targets=[child.target], grace_s=60)

    assert time.monotonic() - begun < 60


def test_a_process_that_has_ended_is_told_as_gone_already(session, start):
    """A PID without a process is no failure and gets no signal."""
    child = start()
    target = child.target
    child.process.kill()
    child.process.wait()

    result = session.call("kill", targets=[target])

    assert result == {"killed": [], "gone_already": [child.pid], "left": []}


def test_a_reused_pid_is_never_signalled(session, start):
    """The start time tells that this is another process than the one that was looked at."""
    child = start()
    target = {**child.target, "start_ticks": child.target["start_ticks"] - 1}

    result = session.call("kill", targets=[target])

    assert result == {"killed": [], "gone_already": [child.pid], "left": []}
    assert child.process.poll() is None


def test_a_stopped_process_is_woken_to_heed_sigterm(session, start):
    """SIGTERM alone would wait for SIGCONT for ever, and SIGKILL would cost its clean-up."""
    child = start()
    os.kill(child.pid, signal.SIGSTOP)
    until(lambda: child.state() == "T")

    result = session.call("kill", targets=[child.target], grace_s=60)

    assert [one["signal"] for one in result["killed"]] == ["SIGTERM"]


def test_a_zombie_counts_as_gone(session, start):
    """It holds nothing any more; only its parent can reap it, and need not have."""
    child = start()
    target = child.target
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: child.state() == "Z")

    result = session.call("kill", targets=[target])

    assert result == {"killed": [], "gone_already": [child.pid], "left": []}
    assert child.state() == "Z"


def test_a_zombie_whose_threads_live_is_not_gone(session, start):
    """A leader that has ended shows as a zombie while its threads still hold all there is."""
    child = start(
        """
        threading.Thread(target=time.sleep, args=(600,)).start()
        print("ready", flush=True)
        import ctypes
        ctypes.CDLL(None).pthread_exit(None)
        """
    )
    until(lambda: child.state() == "Z")

    result = session.call("kill", targets=[child.target], grace_s=5)

    assert [one["pid"] for one in result["killed"]] == [child.pid]
    assert child.process.wait(10) == -signal.SIGTERM


def test_what_a_target_forks_on_sigterm_is_ended_too(session, start):
    """A respawn in the signal handler does not get away with the GPU."""
    child = start(
        """
        def fork(*_):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork():
                os._exit(0)
            time.sleep(600)
        signal.signal(signal.SIGTERM, fork)
        print("ready", flush=True)
        while True: time.sleep(600)
        """
    )

    result = session.call("kill", targets=[child.target], grace_s=0.3)

    assert [one["signal"] for one in result["killed"]] == ["SIGTERM", "SIGKILL"]
    assert result["left"] == []
    living = [s for s in process_table.table().values() if s.sid == child.pid and s.alive]
    assert living == []


def test_a_living_sibling_of_a_target_is_not_taken_for_its_offspring(session, start):
    """What was there before the kill, or has a living parent, was named by nobody."""
    child = start(
        """
        victim = os.fork()
        if not victim:
            time.sleep(600)
        for _ in range(2):
            if not os.fork():
                time.sleep(600)
        print("ready", flush=True)
        print(victim, flush=True)
        while True:
            time.sleep(0.01)
            if not os.fork(): os._exit(0)
            os.waitpid(-1, 0)
        """
    )
    victim = int(child.line())
    stat = process_table.stat(victim)

    target = {"pid": victim, "start_ticks": stat.start_ticks}
    result = session.call("kill", targets=[target], grace_s=2)

    assert [one["pid"] for one in result["killed"]] == [victim]
    assert child.process.poll() is None


def test_fifty_targets_are_ended_together(session, start):
    """One grace period for all of them, and every one is accounted for."""
    child = start(
        """
        print("ready", flush=True)
        for number in range(50):
            if not os.fork():
                if number % 2: signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.write(1, b"%d\\n" % os.getpid())
                while True: time.sleep(600)
        while True: time.sleep(600)
        """
    )
    pids = sorted(int(child.line()) for _ in range(50))
    targets = [{"pid": p, "start_ticks": process_table.stat(p).start_ticks} for p in pids]

    result = session.call("kill", targets=targets, grace_s=0.5)

    assert sorted(one["pid"] for one in result["killed"]) == pids
    assert sorted(one["signal"] for one in result["killed"]) == ["SIGKILL"] * 25 + ["SIGTERM"] * 25
    assert max(one["gone_s"] for one in result["killed"]) < 25 * 0.5


def test_pid_1_and_the_sessions_ancestors_are_protected(session):
    """Nobody who asks to kill them gets more than their names back."""
    pids = [1, os.getpid()]
    targets = [{"pid": p, "start_ticks": process_table.stat(p).start_ticks} for p in pids]

    result = session.call("kill", targets=targets)

    left = [(one["pid"], one["reason"]) for one in result["left"]]
    assert left == [(1, "protected"), (os.getpid(), "protected")]
    assert result["killed"] == []


def test_a_process_that_may_not_be_signalled_is_named(open_session, start, tmp_path):
    """Another user's process is left with its reason, at once, without waiting for it."""
    needs.root("a process of another user")
    setpriv = needs.program("setpriv", "util-linux")
    python = needs.program("/usr/bin/python3", "python3")
    child = start()
    wrapper = Path("/tmp") / f"eagleops-test-python-{os.getpid()}"
    wrapper.write_text(
        f'#!/bin/sh\nexec {setpriv} --reuid=65534 --regid=65534 --clear-groups {python} "$@"\n'
    )
    wrapper.chmod(0o755)
    begun = time.monotonic()

    try:
        result = open_session(python=str(wrapper)).call("kill", targets=[child.target], grace_s=60)
    finally:
        wrapper.unlink()

    refused = {"pid": child.pid, "state": "S", "wchan": None, "reason": "not_permitted"}
    assert result["left"] == [refused]
    assert time.monotonic() - begun < 60
    assert child.process.poll() is None


def test_a_process_in_uninterruptible_sleep_is_named_with_where_it_waits(session, start):
    """SIGKILL stays pending: that kill(2) succeeded proves nothing."""
    freezer = Path("/sys/fs/cgroup/freezer")
    if not (freezer / "cgroup.procs").exists() or os.geteuid() != 0:
        needs.cannot("no cgroup v1 freezer here")
    child = start()
    own = freezer / f"eagleops-test-{os.getpid()}"
    own.mkdir()
    try:
        (own / "cgroup.procs").write_text(str(child.pid))
        (own / "freezer.state").write_text("FROZEN")
        until(lambda: child.state() == "D")

        result = session.call("kill", targets=[child.target], grace_s=0.1, wait_s=0.2)
    finally:
        (own / "freezer.state").write_text("THAWED")
        child.process.wait(10)
        own.rmdir()

    (left,) = result["left"]
    assert (left["pid"], left["state"], left["reason"]) == (child.pid, "D", "uninterruptible")
    assert left["wchan"]


@pytest.mark.parametrize("pid", [0, -5])
def test_a_pid_that_would_mean_a_whole_group_is_refused(session, pid: int):
    """kill(0) and kill(-n) signal groups of processes: such a target is a mistake."""
    with pytest.raises(OperationFailed, match="a target needs a pid above 0") as caught:
        session.call("kill", targets=[{"pid": pid, "start_ticks": 1}])

    assert caught.value.kind == "bad_target"


def test_a_target_without_a_start_time_is_refused(session):
    """A bare PID cannot be told from a reused one."""
    with pytest.raises(OperationFailed, match="start_ticks") as caught:
        session.call("kill", targets=[{"pid": 4194304}])

    assert caught.value.kind == "bad_target"


def test_python_3_8_kills_through_the_kernels_own_calls(open_session, start):
    """Python 3.8 has no pidfd_open: the system call is made by its number."""
    heeding, stubborn = start(), start(STUBBORN)

    old = open_session(python=needs.python("3.8"))
    result = old.call("kill", targets=[heeding.target, stubborn.target], grace_s=0.3)

    assert old.python_version.startswith("3.8.")
    assert {one["pid"]: one["signal"] for one in result["killed"]} == {
        heeding.pid: "SIGTERM",
        stubborn.pid: "SIGKILL",
    }


def killed_here(targets: list, **limits: float) -> dict:
    """The operation's result, run in this process."""
    results = []

    def run():
        results.append((yield from kill(Context({}), targets, **limits)))

    for _ in run():
        pass
    return results[0]


def test_without_pidfds_the_start_time_guards_each_signal(start, monkeypatch):
    """A kernel of before 5.3 has none; the kill then compares before it signals."""
    monkeypatch.setattr(pidfd, "open_pidfd", lambda _pid: None)
    heeding, stubborn, other = start(), start(STUBBORN), start()
    reused = {**other.target, "start_ticks": 1}

    result = killed_here([heeding.target, stubborn.target, reused], grace_s=0.3)

    assert {one["pid"]: one["signal"] for one in result["killed"]} == {
        heeding.pid: "SIGTERM",
        stubborn.pid: "SIGKILL",
    }
    assert result["gone_already"] == [other.pid]
    assert other.process.poll() is None


def test_the_calls_by_number_are_the_ones_that_they_are_taken_for(start):
    """They open, signal and see the end of a real process, and fail as the kernel does."""
    child = start()
    descriptor = pidfd._open_by_number(child.pid)
    try:
        assert pidfd.ended(descriptor) is False
        pidfd._send_by_number(descriptor, signal.SIGTERM)
        until(lambda: pidfd.ended(descriptor))
        child.process.wait()
        with pytest.raises(ProcessLookupError):
            pidfd._send_by_number(descriptor, signal.SIGTERM)
    finally:
        os.close(descriptor)
    with pytest.raises(ProcessLookupError):
        pidfd.open_pidfd(child.pid)


def test_a_kill_that_is_called_off_signals_nobody_any_more(session, start):
    """A client that goes between SIGTERM and SIGKILL leaves the stubborn alive."""
    child = start(STUBBORN)

    for event in session.stream("kill", targets=[child.target], grace_s=60):
        assert event["event"] == "signalled"
        break

    assert session.call("kill", targets=[])["left"] == []
    assert child.process.poll() is None


def test_the_time_limit_ends_the_wait_with_a_result(session, start):
    """What is left when the request's time runs out is told; no SIGKILL comes early for it."""
    child = start(STUBBORN)

    result = session.call("kill", targets=[child.target], grace_s=60, time_limit_s=0.6)

    assert [(one["pid"], one["reason"]) for one in result["left"]] == [(child.pid, "alive")]
    assert child.process.poll() is None
