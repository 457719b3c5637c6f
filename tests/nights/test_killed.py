"""Writers that die, disks that are full, and two processes that want the same suite."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eagleops.errors import NightsError, NightsHeld
from eagleops.nights.store import NightStore
from parts.poll import until

SUITE = "default"

# Writes a night, and dies at the n-th call of the named function of os in the second write.
DIES = """
import os, signal, sys
from pathlib import Path
import attrs
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore
store, name = NightStore(Path(sys.argv[1])), sys.argv[2]
findings = tuple(Finding("disk", "llm", "pass", "x" * 5000) for _ in range(40))
night = Night(suite="default", uuid="n", began_utc="2026-10-01T00:00:00Z",
              ended_utc="2026-10-01T01:00:00Z", findings=findings[:1])
store.write(night)
real = getattr(os, name)
def die(*words, **more):
    if name != "open" or ".new" in str(words[0]):
        if name == "open":
            half = real(*words, **more)
            os.write(half, b'{"version":1,"suite":"def')
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*words, **more)
setattr(os, name, die)
store.write(attrs.evolve(night, findings=findings))
"""


@pytest.mark.parametrize("step", ["open", "fsync", "replace", "unlink"])
def test_a_writer_that_is_killed_leaves_the_night_as_it_was(store, make_night, step) -> None:
    """At any step of a write: the earlier night is whole, or the later one is."""
    died = subprocess.run(
        [sys.executable, "-c", DIES, store.folder, step], check=False, capture_output=True
    )

    (night,) = store.history(SUITE)
    assert died.returncode in {0, -signal.SIGKILL}, died.stderr
    assert len(night.findings) == (1 if died.returncode and step != "unlink" else 40)
    assert store.notice == ""
    store.write(make_night(5, {}))
    assert len(store.history(SUITE)) == 2


ENDLESS = """
import itertools, sys
from pathlib import Path
import attrs
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore
store = NightStore(Path(sys.argv[1]))
findings = tuple(Finding("disk", "llm", "pass", str(n) * 1000) for n in range(90))
night = Night(suite="default", uuid=sys.argv[2], began_utc=sys.argv[3])
with store.lock("default"):
    for n in itertools.cycle(range(1, 91)):
        store.write(attrs.evolve(night, findings=findings[:n]))
        print(n, flush=True)
"""


def test_writers_that_are_killed_at_any_moment_lose_nothing(store) -> None:
    """Eight of them, one after the other: what each had written is there, and can be taken up."""
    for number in range(8):
        began = f"2026-10-{number + 1:02d}T00:00:00Z"
        writer = subprocess.Popen(
            [sys.executable, "-c", ENDLESS, store.folder, f"{number:08d}", began],
            stdout=subprocess.PIPE,
            text=True,
        )
        said = [int(writer.stdout.readline()) for _ in range(3 + 5 * number)]
        writer.kill()
        said += [int(line) for line in writer.stdout.read().split()]
        writer.wait()

        night = store.unfinished(SUITE, 60, began)
        assert night.uuid == f"{number:08d}"
        # The last write may have been made and not been said.
        assert len(night.findings) in {said[-1], said[-1] % 90 + 1}
    assert store.notice == ""
    assert len(list(store.folder_of(SUITE).glob("*.json"))) == 8


def test_a_suite_is_run_by_one_process_at_a_time(store) -> None:
    """The second is told who has it; when the first is killed, the way is free."""
    began = "2026-10-01T00:00:00Z"
    first = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, store.folder, "00000000", began],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        first.stdout.readline()
        with pytest.raises(NightsHeld) as raised, store.lock(SUITE):
            pass
        with store.lock("another"):
            pass
    finally:
        first.kill()
        first.communicate()

    told = raised.value
    assert told.pid == first.pid
    assert str(told).startswith(
        f"{store.folder}/default/lock: the suite default is being run by process {first.pid} of "
    )
    assert told.to_dict()["since_utc"].endswith("Z")
    with store.lock(SUITE):
        pass


def test_two_threads_of_one_process_are_two(store) -> None:
    """A library's user may call it twice at once."""
    with (
        store.lock(SUITE),
        pytest.raises(NightsHeld) as raised,
        NightStore(store.folder).lock(SUITE),
    ):
        pass

    assert raised.value.pid == os.getpid()
    with store.lock(SUITE):
        pass


def test_a_child_does_not_keep_the_lock(store) -> None:
    """A program that the night started and that outlives it has no part in it."""
    with store.lock(SUITE):
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with store.lock(SUITE):
        pass
    child.communicate(b"\n")


def test_a_holder_that_has_not_said_who_it_is_holds_nevertheless(store) -> None:
    """Between the lock and its words, or with words that are no JSON."""
    with store.lock(SUITE):
        (store.folder_of(SUITE) / "lock").write_text("{")
        with pytest.raises(NightsHeld) as raised, store.lock(SUITE):
            pass

    assert raised.value.pid is None
    assert raised.value.problem == "the suite default is being run by another process"


def test_a_lock_lets_go_when_the_night_fails(store) -> None:
    """And leaves no word of who had it."""
    with pytest.raises(RuntimeError), store.lock(SUITE):
        raise RuntimeError

    assert (store.folder_of(SUITE) / "lock").read_text() == ""


def test_two_clients_that_share_a_store_lose_nothing(store) -> None:
    """Each writes its own nights at the same time, without a lock even."""
    program = ENDLESS.replace('with store.lock("default"):', "if True:")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", program, store.folder, f"{n:08d}", "2026-10-01T00:00:00Z"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(2)
    ]
    for writer in writers:
        for _ in range(20):
            writer.stdout.readline()
    for writer in writers:
        writer.kill()
        writer.communicate()

    assert store.history(SUITE) == ()
    assert store.unfinished(SUITE, 60, "2026-10-01T00:00:00Z").uuid == "00000001"
    assert len(list(store.folder_of(SUITE).glob("*.json"))) == 2
    assert store.notice == ""


def test_a_full_disk_costs_the_new_night_alone(small_disk: Path, make_night) -> None:
    """The error says so, no part of a file stays, and with room the night is kept."""
    store = NightStore(small_disk / "nights")
    padding = small_disk / "padding"
    padding.write_bytes(bytes(600_000))
    first = make_night(0, {("llm", "disk"): "pass"})
    large = make_night(1, {("llm", f"disk:{n}"): "pass" for n in range(4000)})
    path = store.write(first)

    with pytest.raises(NightsError) as raised:
        store.write(large)

    assert "the night cannot be kept: No space left on device" in str(raised.value)
    assert raised.value.way_out == (
        "What was kept before is whole. Make room on the disk, then try again."
    )
    assert list(path.parent.iterdir()) == [path]
    assert store.history(SUITE) == (first,)
    padding.unlink()
    store.write(large)
    assert store.history(SUITE) == (first, large)


def test_readers_and_a_pruner_meet(store, make_night) -> None:
    """A night that is removed while somebody lists them is just not there any more."""
    for day in range(200):
        store.write(make_night(day, {("llm", "disk"): "pass"}))
    counts: list[int] = []
    done = threading.Event()
    reader = NightStore(store.folder)

    def read() -> None:
        while not done.is_set():
            counts.append(len(reader.history(SUITE)))

    thread = threading.Thread(target=read)
    thread.start()
    until(lambda: counts)
    for keep in range(190, 0, -10):
        store.prune(SUITE, keep)
    done.set()
    thread.join()

    assert counts == sorted(counts, reverse=True)
    assert reader.notice == ""
    assert len(store.history(SUITE)) == 10
