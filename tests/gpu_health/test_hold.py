"""One client at a time: who holds a machine, and what becomes of a hold, over a real sshd."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from eagleops.errors import EagleError, OperationFailed, Unreachable
from eagleops.inventory import HostEntry
from eagleops.machine import Machine
from eagleops.remote.supervisor import start_ticks
from eagleops.workflows.nightly.holder import Holder, living
from eagleops.workflows.nightly.holding import Hold, held
from parts.poll import until
from parts.sshd import Sshd

# A client of its own, to be killed: it says when it holds the machine, and waits.
CLIENT = """
import sys
from pathlib import Path
from eagleops.inventory import HostEntry
from eagleops.machine import Machine
from eagleops.transport.ssh import SshOptions, SshTransport
from eagleops.workflows.nightly.holding import held
address, known_hosts, key, python, suite = sys.argv[1:]
options = SshOptions(known_hosts=(Path(known_hosts),), identity_files=(Path(key),),
                     config_file=Path("/dev/null"), agent=False)
machine = Machine("llm", HostEntry(name="llm", transport="ssh", address=address, python=python),
                  SshTransport(address, options=options))
with held(machine, suite):
    print("held", flush=True)
    sys.stdin.read()
"""


def machine_of(sshd: Sshd) -> Machine:
    """The server as a machine."""
    entry = HostEntry(name="llm", transport="ssh", address=sshd.address, python=sys.executable)
    return Machine("llm", entry, sshd.transport())


@pytest.fixture
def machine(sshd: Sshd) -> Iterator[Machine]:
    """A way to the server."""
    made = machine_of(sshd)
    yield made
    made.close()


@pytest.fixture
def other(sshd: Sshd) -> Iterator[Machine]:
    """Another way there, over a connection of its own."""
    made = machine_of(sshd)
    yield made
    made.close()


@pytest.fixture
def client(sshd: Sshd) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """``client("default")``: another process that holds the machine, for that suite."""
    started: list[subprocess.Popen[bytes]] = []

    def start(suite: str, address: str = "") -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", CLIENT, address or sshd.address, str(sshd.known_hosts)]
        argv += [str(sshd.keys.user), sys.executable, suite]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def take(machine: Machine, suite: str = "mine") -> bool:
    """Whether the machine could be held just now."""
    try:
        with held(machine, suite):
            return True
    except OperationFailed as error:
        assert error.kind == "held"  # noqa: PT017 - any other failure is the test's
        return False


def test_the_second_is_told_who_holds_it_and_since_when(machine: Machine, other: Machine) -> None:
    """And gets it as soon as the first has let go."""
    with held(machine, "default") as hold:
        with pytest.raises(OperationFailed) as refusal, held(other, "weekend"):
            pass
        holder = refusal.value.data["holder"]

    assert refusal.value.kind == "held"
    assert (holder["purpose"], holder["since_utc"]) == (
        "nightly checks, suite default",
        hold.since_utc,
    )
    assert re.match(
        r"\S+@\S+ holds the machine since 20\S+Z \(nightly checks, suite default; PID \d+\)",
        refusal.value.problem,
    )
    assert take(other)


def test_a_hold_stands_in_nobody_s_way(machine: Machine) -> None:
    """Other operations go on beside it, on the same machine object."""
    with held(machine, "default") as hold:
        found = machine.call("snapshot", servers=False)
        hold.check()

    assert found["machine"]["pid_ns"]


def test_a_killed_client_lets_go(
    client: Callable[..., subprocess.Popen[bytes]], other: Machine
) -> None:
    """SIGKILL leaves it no word to say; the session over there ends with its link."""
    process = client("default")
    assert not take(other)

    process.send_signal(signal.SIGKILL)
    process.wait()

    until(lambda: take(other))


def test_a_killed_sshd_lets_go_and_is_noticed(sshd: Sshd, machine: Machine, other: Machine) -> None:
    """Whoever held it learns that it does no longer."""
    with held(machine, "default") as hold:
        sshd.kill_connections()
        until(lambda: hold.lost)
        with pytest.raises(Unreachable):
            hold.check()

    until(lambda: take(other))


def test_a_killed_session_lets_go(machine: Machine, other: Machine, sshd: Sshd) -> None:
    """Also where the process over there is ended by somebody."""
    with held(machine, "default") as hold:
        with pytest.raises(OperationFailed) as refusal, held(other, "weekend"):
            pass
        os.kill(refusal.value.data["holder"]["pid"], signal.SIGKILL)
        until(lambda: hold.lost)
        assert take(other)


def test_a_client_that_died_behind_a_dead_link_is_succeeded(
    client: Callable[..., subprocess.Popen[bytes]], sshd: Sshd, other: Machine
) -> None:
    """A laptop that was closed and opened again need not wait for its own lost link.

    The link hangs: over there nothing says that the client is gone.
    """
    link = sshd.link()
    process = client("default", f"{sshd.user}@127.0.0.1:{link.port}")
    link.hang()
    process.send_signal(signal.SIGKILL)
    process.wait()

    with held(other, "default") as hold:
        hold.check()
        assert not take(machine_of(sshd), "weekend")


def test_a_living_client_is_not_taken_over_from(
    client: Callable[..., subprocess.Popen[bytes]], other: Machine
) -> None:
    """Stopped as it may be, it will go on: two would believe that they hold the machine."""
    client("default").send_signal(signal.SIGSTOP)

    assert not take(other, "default")


def test_one_who_was_taken_over_from_knows(
    machine: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the other one thought: it stops."""
    monkeypatch.setattr(Holder, "has_ended", lambda _: True)

    with held(machine, "default") as first, held(other, "default") as second:
        lost = until(lambda: first.lost)
        second.check()

    assert isinstance(lost, OperationFailed)
    assert lost.kind == "handed_over"


def test_a_lost_link_does_not_lock_its_own_process_out(
    sshd: Sshd, machine: Machine, other: Machine
) -> None:
    """The session that hangs behind it gives way to the next try."""
    link = sshd.link()
    through = Machine("llm", machine.entry, sshd.transport(via=link))
    with held(through, "default") as first:
        assert not take(other)  # its own process, too: it holds
        link.hang()
        threading.Thread(target=through.transport.close).start()
        until(lambda: first.lost)

    assert take(other, "default")


def test_holds_know_one_another_by_more_than_a_number() -> None:
    """A number that is used again, another boot, another computer, another text."""
    here = Holder.new()

    assert Holder.parse(here.name) == here
    with living(here.name):
        assert not here.has_ended()
    assert here.has_ended()
    assert not attrs.evolve(Holder.new(), pid=os.getppid(), start_ticks=parent()).has_ended()
    assert attrs.evolve(here, pid=os.getppid(), start_ticks=parent() - 1).has_ended()
    assert attrs.evolve(here, boot_id="another").has_ended()
    assert not attrs.evolve(here, computer="another", pid=1 << 22).has_ended()
    assert not attrs.evolve(here, pid_ns=1, pid=1 << 22).has_ended()
    assert [Holder.parse(text) for text in ("", "[1]", "{}", "7")] == [None] * 4


def parent() -> int:
    """When the parent process was started."""
    return start_ticks(os.getppid())


def test_of_many_at_once_one_gets_it(sshd: Sshd) -> None:
    """Whoever is first."""
    machines = [machine_of(sshd) for _ in range(4)]
    got: list[Hold] = []
    refused: list[EagleError] = []
    start, enough = threading.Barrier(len(machines)), threading.Event()

    def try_it(machine: Machine, number: int) -> None:
        start.wait()
        try:
            with held(machine, f"suite-{number}") as hold:
                got.append(hold)
                enough.wait(60)
        except OperationFailed as error:
            refused.append(error)

    threads = [
        threading.Thread(target=try_it, args=(machine, number))
        for number, machine in enumerate(machines)
    ]
    for thread in threads:
        thread.start()
    until(lambda: len(refused) == len(machines) - 1)
    enough.set()
    for thread in threads:
        thread.join()
    for machine in machines:
        machine.close()

    assert len(got) == 1
    assert {error.kind for error in refused} == {"held"}


def test_ctrl_c_lets_go(machine: Machine, other: Machine) -> None:
    """As every other end of the block."""
    with pytest.raises(KeyboardInterrupt), held(machine, "default"):
        raise KeyboardInterrupt

    assert take(other)


def test_where_no_state_can_be_kept_the_folder_is_named(machine: Machine, sshd: Sshd) -> None:
    """With the way out."""
    (sshd.home / ".local").write_text("in the way")
    entry = machine.entry
    blocked = Machine(
        "llm", entry, machine.transport, {"state_home": str(sshd.home / ".local" / "state")}
    )

    with pytest.raises(OperationFailed) as refusal, held(blocked, "default"):
        pass

    assert refusal.value.kind == "no_state"
    assert str(Path(sshd.home, ".local", "state", "eagleops")) in refusal.value.problem
    assert "state_home:" in refusal.value.way_out
    blocked.close()


def test_a_machine_that_is_not_there_is_unreachable(sshd: Sshd, machine: Machine) -> None:
    """Not a hold that fails."""
    link = sshd.link()
    gone = Machine("llm", machine.entry, sshd.transport(via=link))
    link.close()

    with pytest.raises(Unreachable), held(gone, "default"):
        pass
