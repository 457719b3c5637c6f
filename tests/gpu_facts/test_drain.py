"""The drain operation: settled means settled, and a time-out says who holds what."""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from eagleops.errors import OperationFailed
from eagleops.remote.drain import all_idle, is_idle

LEVELS = {"0": 100, "1": 100}

# Two H200s after SIGKILL: seconds, and MiB on each.
FALL = (
    (0.00, (21959, 21959)),
    (0.22, (387, 21959)),
    (0.32, (0, 387)),
    (0.34, (0, 0)),
)


@attrs.define
class Memory:
    """What the GPUs hold: a file that stand-ins for the driver read anew each time."""

    file: Path
    released_s: float = 0.0

    def set(self, *used_mib: int | str) -> None:
        """From now on the GPUs hold so much; a reader sees all of it or none."""
        rows = "".join(f"{index}, {mib}\n" for index, mib in enumerate(used_mib))
        new = self.file.with_suffix(".new")
        new.write_text(rows)
        new.replace(self.file)

    def fall(self) -> threading.Thread:
        """Lets the memory fall from now on; notes when the last of it was released."""

        def run() -> None:
            begun_s = time.monotonic()
            for at_s, used_mib in FALL:
                time.sleep(max(0.0, begun_s + at_s - time.monotonic()))
                self.released_s = time.monotonic()
                self.set(*used_mib)

        thread = threading.Thread(target=run)
        thread.start()
        return thread


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    """Two GPUs that hold 21,959 MiB each."""
    memory = Memory(tmp_path / "memory.csv")
    memory.set(21959, 21959)
    return memory


# One query of the real one takes 36 to 38 ms.
SMI = """
    case $1 in
    *apps*) cat {folder}/apps 2>/dev/null; exit 0;;
    --query-gpu=index,memory.used) sleep 0.034; exec cat {folder}/memory.csv;;
    *) sed -E 's/^([0-9]+), (.*)/\\1,GPU-\\1,,580,\\2,143771,,,,,,,,,,,H200/' {folder}/memory.csv;;
    esac
"""


@pytest.fixture
def smi(memory: Memory, fake_smi: Callable[[str], str]) -> str:
    """A PATH with an nvidia-smi that tells the memory."""
    return fake_smi(SMI.format(folder=memory.file.parent))


@pytest.fixture
def by_smi(open_session, smi: str) -> Iterator:
    """A session that asks nvidia-smi."""
    return open_session(path=smi)


@pytest.fixture
def by_nvml(open_session, memory: Memory, build) -> Iterator:
    """A session that asks NVML."""
    folder = build(f'MEMORY_FILE="{memory.file}"').parent
    return open_session(nvml=True, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})


@pytest.mark.parametrize("source", ["by_smi", "by_nvml"])
def test_a_fall_gpu_by_gpu_is_drained_at_its_end_alone(request, memory: Memory, source: str):
    """Whole, one GPU low, both low: only the last of these is drained, and each is told."""
    session, events = request.getfixturevalue(source), []
    levels = [used_mib for _, used_mib in FALL]

    def note(event: dict) -> None:
        events.append(event)
        told = tuple(gpu["used_mib"] for gpu in event["gpus"])
        if told == levels[0] != (0, 0):
            levels.pop(0)
            memory.set(*levels[0])

    result = session.call("drain", idle_mib=LEVELS, on_event=note)

    assert result["drained"] is True
    assert [gpu["used_mib"] for gpu in result["gpus"]] == [0, 0]
    assert result["holders"] == []
    told = [tuple(gpu["used_mib"] for gpu in event["gpus"]) for event in events]
    assert list(dict.fromkeys(told)) == [used_mib for _, used_mib in FALL]
    assert events[0]["gpus"][1] == {"index": 1, "used_mib": 21959, "idle_mib": 100}


@pytest.mark.alone
@pytest.mark.parametrize("source", ["by_smi", "by_nvml"])
def test_the_release_is_noticed_within_a_tenth_of_a_second(request, memory: Memory, source: str):
    """What a drain reports as its length is the truth, to 100 ms."""
    session = request.getfixturevalue(source)
    # The first call of an operation has its modules compiled before its clock begins.
    session.call("drain", idle_mib={"0": 99999})
    late_s = []
    for _ in range(5):
        memory.set(21959, 21959)
        begun_s = time.monotonic()
        falling = memory.fall()

        result = session.call("drain", idle_mib=LEVELS)

        falling.join()
        late_s.append(begun_s + result["drain_s"] - memory.released_s)
    print(f"{source}: noticed {[round(late * 1000, 1) for late in late_s]} ms after the release")
    # One round that the machine slept through is no verdict on the drain.
    assert min(late_s) > -0.05
    assert statistics.median(late_s) <= 0.1


@pytest.mark.alone
def test_through_nvml_the_whole_proof_takes_less_than_a_tenth_of_a_second(by_nvml, memory: Memory):
    """Three readings in a row, 20 ms apart, and the answer is there."""
    by_nvml.call("drain", idle_mib={"0": 99999})
    taken_s = []
    for _ in range(5):
        memory.set(21959, 21959)
        falling = memory.fall()

        result = by_nvml.call("drain", idle_mib=LEVELS)

        answered_s = time.monotonic()
        falling.join()
        taken_s.append(answered_s - memory.released_s)
        assert result["elapsed_s"] - result["drain_s"] >= 0.03
    assert statistics.median(taken_s) < 0.1


def test_one_low_reading_proves_nothing(open_session, fake_smi, tmp_path):
    """Readings at the level must follow one another; a relapse begins the count anew."""
    readings = [0, 0, 500, 0, 0, 0]
    (tmp_path / "readings").write_text("".join(f"{mib}\n" for mib in readings))
    path = fake_smi(
        f"""
        cd {tmp_path}
        case $1 in
        --query-gpu=index,memory.used)
            n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count
            echo "0, $(sed -n ${{n}}p readings)";;
        esac
        """
    )

    result = open_session(path=path).call("drain", idle_mib={"0": 100})

    assert result["drained"] is True
    assert (tmp_path / "count").read_text().strip() == "6"
    assert 0 < result["drain_s"] < result["elapsed_s"]


def test_a_failure_between_two_readings_begins_the_count_anew(open_session, fake_smi, tmp_path):
    """An answer that did not come is not an answer of zero."""
    path = fake_smi(
        f"""
        cd {tmp_path}
        case $1 in
        --query-gpu=index,memory.used)
            n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count
            [ $n = 3 ] && {{ echo 'Failed to initialize NVML: Unknown Error'; exit 255; }}
            echo "0, 0";;
        esac
        """
    )

    result = open_session(path=path).call("drain", idle_mib={"0": 100})

    assert result["drained"] is True
    assert (tmp_path / "count").read_text().strip() == "6"


def test_a_time_out_tells_who_still_holds_what(open_session, start, memory, smi, tmp_path):
    """The result is a result: the figures, and the process behind them."""
    (tmp_path / "nvidia1").touch()
    child = start(
        "file = open(sys.argv[1]); print('ready', flush=True); time.sleep(600)",
        str(tmp_path / "nvidia1"),
    )
    (tmp_path / "apps").write_text(f"GPU-1, {child.pid}, 21950\n")
    memory.set(0, 21959)
    session = open_session(path=smi, device_prefix=str(tmp_path / "nvidia"))

    result = session.call("drain", idle_mib=LEVELS, timeout_s=0.3)

    assert (result["drained"], result["drain_s"], result["problem"]) == (False, None, None)
    assert result["elapsed_s"] >= 0.2
    assert [gpu["used_mib"] for gpu in result["gpus"]] == [0, 21959]
    (holder,) = result["holders"]
    assert (holder["pid"], holder["gpu_devices"]) == (child.pid, [1])
    assert holder["gpu_mib"] == {"GPU-1": 21950}


def test_the_requests_own_limit_ends_in_a_result_too(by_smi):
    """A drain that is given less time than its timeout still answers."""
    result = by_smi.call("drain", idle_mib=LEVELS, timeout_s=60, time_limit_s=2.0)

    assert result["drained"] is False
    assert 1.0 < result["elapsed_s"] < 60


def test_memory_at_the_level_is_idle(by_smi, memory: Memory):
    """A level is met by what is equal to it."""
    memory.set(100, 99)

    assert by_smi.call("drain", idle_mib=LEVELS)["drained"] is True


def test_a_gpu_that_is_not_named_is_not_waited_for(by_smi, memory: Memory):
    """Another server may keep its GPU."""
    memory.set(0, 21959)

    result = by_smi.call("drain", idle_mib={"0": 100})

    assert result["drained"] is True
    assert [gpu["used_mib"] for gpu in result["gpus"]] == [0, 21959]


def test_a_gpu_that_is_named_and_not_there_is_not_drained(by_smi, memory: Memory):
    """A lost GPU proves nothing about its memory."""
    memory.set(0, 0)

    result = by_smi.call("drain", idle_mib={"0": 100, "7": 100}, timeout_s=0.3)

    assert result["drained"] is False


def test_unified_memory_is_drained_when_its_processes_are_gone(by_smi, memory, tmp_path):
    """Where no memory is told, the list of processes is what there is."""
    memory.set("[N/A]", 0)
    (tmp_path / "apps").write_text("GPU-0, 1234, 9000\n")

    held = by_smi.call("drain", idle_mib=LEVELS, timeout_s=0.5)
    (tmp_path / "apps").write_text("")
    freed = by_smi.call("drain", idle_mib=LEVELS)

    assert (held["drained"], freed["drained"]) == (False, True)
    assert freed["gpus"][0]["used_mib"] is None


def test_a_drain_of_nothing_is_refused(by_smi):
    """It would always succeed, and prove nothing."""
    with pytest.raises(OperationFailed, match="idle_mib names none") as caught:
        by_smi.call("drain", idle_mib={})

    assert caught.value.kind == "no_idle_level"


def test_a_driver_that_tells_nothing_ends_the_wait(open_session, fake_smi):
    """After some looks without one GPU, waiting for memory to fall is no use."""
    path = fake_smi("echo 'No devices were found'; exit 6")

    with pytest.raises(OperationFailed) as caught:
        open_session(path=path).call("drain", idle_mib=LEVELS)

    assert caught.value.kind == "gpus_unreadable"
    assert str(caught.value).startswith(
        "this machine: no GPU can be read: No devices were found: the driver is loaded and shows"
    )


def test_a_drain_can_be_called_off(by_smi):
    """The session is free for another operation at once."""
    for event in by_smi.stream("drain", idle_mib=LEVELS, timeout_s=60):
        assert event["event"] == "gpus"
        break
    begun_s = time.monotonic()

    assert by_smi.call("drain", idle_mib={"0": 99999})["drained"] is True
    assert time.monotonic() - begun_s < 60


def test_nothing_new_is_not_told_at_every_reading(by_smi):
    """A quiet wait says that it waits, twice a second, not fifty times."""
    events = []

    by_smi.call("drain", idle_mib=LEVELS, timeout_s=2.0, on_event=events.append)

    assert 2 <= len(events) <= 5


def gpu(index: int, used_mib: int | None, *processes: int | None) -> dict:
    """As much of a GPU's facts as an idle level needs."""
    return {"index": index, "used_mib": used_mib, "processes": [{"used_mib": p} for p in processes]}


@pytest.mark.parametrize(
    ("facts", "idle"),
    [
        (gpu(0, 0), True),
        (gpu(0, 100), True),
        (gpu(0, 101), False),
        (gpu(0, 0, 5000), True),
        (gpu(0, None), True),
        (gpu(0, None, 40, 60), True),
        (gpu(0, None, 40, 61), False),
        (gpu(0, None, None), False),
    ],
)
def test_idle_goes_by_memory_and_else_by_processes(facts: dict, idle: bool):
    """What is not told is never taken for free."""
    assert is_idle(facts, 100) is idle
    assert all_idle([facts], {0: 100}) is idle
    assert all_idle([facts], {0: 100, 1: 100}) is False
