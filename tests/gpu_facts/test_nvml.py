"""NVML through ctypes, against libraries built here that have and lack what drivers do."""

from __future__ import annotations

import os
import threading

import pytest

from eagleops.errors import OperationFailed
from eagleops.remote import gpus
from eagleops.remote.context import Context
from eagleops.remote.failure import Cancelled, Failure
from eagleops.remote.gpu_facts import unread
from eagleops.remote.nvml import Nvml, NvmlUnavailable
from parts import needs


def test_every_fact_is_read_in_its_unit(build):
    """Bytes become MiB, milliwatts watts, and a function that is not supported leaves None."""
    nvml = Nvml(str(build()))

    reading = nvml.read()

    nvml.close()
    assert (reading.problem, reading.driver_version) == (None, "580.159.04")
    assert reading.gpus[1] == {
        "index": 1,
        "uuid": "GPU-00000000-1",
        "name": "NVIDIA H200",
        "bus_id": "00000000:00:07.0",
        "minor": 4,
        "used_mib": 21960,
        "total_mib": 143771,
        "reserved_mib": 616,
        "temperature_c": 41,
        "power_w": 132.54,
        "power_limit_w": None,
        "sm_clock_mhz": 1980,
        "mem_clock_mhz": 3201,
        "utilization_pct": 38,
        "throttle_reasons": ["sw_power_cap", "hw_thermal_slowdown"],
        "pcie_gen": 5,
        "pcie_width": 16,
        "processes": [{"pid": 1006, "used_mib": 21950}, {"pid": 2000, "used_mib": None}],
    }


@pytest.mark.parametrize("macro", ["OLD", "LONG_PROCESS", "_"])
def test_a_list_longer_than_the_buffer_is_read_in_each_layout(build, macro: str):
    """The entry of a process has had three sizes; none of them shifts a PID."""
    nvml = Nvml(str(build(macro)))

    processes = nvml.read().gpus[0]["processes"]

    assert processes == [{"pid": 1006 + n, "used_mib": 21950} for n in range(40)]


def test_an_old_driver_tells_what_it_can(build):
    """Symbols that are missing are looked up by their older names, or leave None."""
    nvml = Nvml(str(build("OLD")))

    gpu = nvml.read().gpus[0]

    assert (gpu["used_mib"], gpu["total_mib"], gpu["reserved_mib"]) == (22575, 143771, None)
    assert (gpu["minor"], gpu["bus_id"]) == (None, None)
    assert gpu["throttle_reasons"] == ["sw_power_cap", "hw_thermal_slowdown"]


def test_memory_that_the_driver_does_not_tell_is_none(build):
    """Unified memory is no memory of 0 MiB."""
    nvml = Nvml(str(build("OLD", "NO_MEMORY")))

    assert [gpu["used_mib"] for gpu in nvml.memory().gpus] == [None, None]


def test_the_cheap_reading_is_memory_alone(build):
    """It is what a drain polls, so it asks nothing else."""
    nvml = Nvml(str(build()))

    reading = nvml.memory()

    assert reading.gpus == [{**unread(n), "used_mib": 21959 + n} for n in range(2)]


def test_a_library_without_any_function_is_unavailable(empty_library):
    """A stub that is called like it does not crash anybody."""
    with pytest.raises(NvmlUnavailable, match="this driver's library lacks the function"):
        Nvml(str(empty_library))


def test_a_missing_library_is_unavailable():
    """The dynamic linker's own words are kept."""
    with pytest.raises(
        NvmlUnavailable, match=r"libnone\.so did not load: libnone\.so: cannot open"
    ):
        Nvml("libnone.so")


def test_a_version_mismatch_is_unavailable_in_the_drivers_words(build):
    """nvidia-smi is then asked, and explains the same."""
    with pytest.raises(NvmlUnavailable) as caught:
        Nvml(str(build("INIT_CODE=18")))

    assert str(caught.value) == "Failed to initialize NVML: Driver/library version mismatch"


def test_a_lost_gpu_leaves_the_others_and_a_problem(build):
    """The index that does not answer is named with its cause."""
    reading = Nvml(str(build("LOST"))).read()

    assert [gpu["index"] for gpu in reading.gpus] == [0]
    assert reading.problem is not None
    assert reading.problem.startswith(
        "Unable to determine the device handle for GPU1: GPU is lost: a GPU is lost to the driver"
    )


def test_no_gpu_at_all_is_a_problem(build):
    """A driver without GPUs is told as nvidia-smi tells it."""
    reading = Nvml(str(build("COUNT=0"))).read()

    assert reading.gpus == []
    assert (reading.problem or "").startswith("No devices were found: the driver is loaded")


def test_a_driver_that_hangs_is_given_up(build, monkeypatch):
    """No signal ends a call in the driver, so its thread is left behind and the fact told."""
    library = str(build("HANG"))
    monkeypatch.setattr(gpus, "LIMIT_S", 2.0)
    monkeypatch.setattr(gpus, "Nvml", lambda: Nvml(library))

    with gpus.Gpus(Context({})) as opened:
        assert opened.source == "nvml"
        reading = opened.read()

    assert reading.gpus == []
    assert (reading.problem or "").startswith("the driver did not answer within 2 s: it hangs.")


def test_a_hanging_driver_does_not_keep_a_client_that_has_gone():
    """Calling the operation off ends the wait at once."""
    context, released = Context({}), threading.Event()
    context.cancel()

    with pytest.raises(Cancelled):
        gpus.within(context, 60, released.wait)

    released.set()


def test_what_a_bounded_call_raises_is_raised():
    """A failure in the other thread is not swallowed there."""

    def fail() -> None:
        raise Failure("some_kind", "because")

    with pytest.raises(Failure, match="because"):
        gpus.within(Context({}), 5, fail)


def test_a_session_uses_the_library_that_the_dynamic_linker_finds(build, open_session):
    """Over there nothing is configured: the library is found as any program finds it."""
    folder = build().parent
    session = open_session(nvml=True, env={**os.environ, "LD_LIBRARY_PATH": str(folder)})

    seen = session.call("snapshot", servers=False)

    assert (seen["gpu_source"], seen["driver_version"]) == ("nvml", "580.159.04")
    assert [gpu["used_mib"] for gpu in seen["gpus"]] == [21959, 21960]


def test_a_session_without_nvml_falls_back_to_nvidia_smi(open_session, fake_smi, empty_library):
    """Where NVML does not work, the program is asked."""
    path = fake_smi("case $1 in *apps*) ;; *) echo '0,GPU-1,,,7,9,,,,,,,,,,,K80';; esac")
    env = {**os.environ, "LD_LIBRARY_PATH": str(empty_library.parent)}

    seen = open_session(nvml=True, path=path, env=env).call("snapshot", servers=False)

    assert (seen["gpu_source"], [gpu["used_mib"] for gpu in seen["gpus"]]) == ("nvidia-smi", [7])


def test_a_driver_that_does_not_start_names_both_ways_that_failed(open_session, empty_library):
    """The problem says what was tried, and a drain does not wait for what cannot be seen."""
    folder = str(empty_library.parent)
    session = open_session(nvml=True, path=folder, env={**os.environ, "LD_LIBRARY_PATH": folder})

    seen = session.call("snapshot", servers=False)

    assert (seen["gpu_source"], seen["gpus"], seen["driver_found"]) == ("none", [], True)
    assert seen["gpu_problem"] == (
        "Failed to initialize NVML: this driver's library lacks the function; no nvidia-smi on PATH"
    )
    with pytest.raises(OperationFailed, match="no GPU can be read: Failed to initialize NVML"):
        session.call("drain", idle_mib={"0": 100})


def test_python_3_8_reads_the_same(build, open_session):
    """The oldest Python of a target reads structures and lists alike."""
    python = needs.python("3.8")
    env = {**os.environ, "LD_LIBRARY_PATH": str(build().parent)}

    seen = open_session(python=python, nvml=True, env=env).call("snapshot", servers=False)

    assert [gpu["used_mib"] for gpu in seen["gpus"]] == [21959, 21960]
    assert len(seen["gpus"][0]["processes"]) == 40


def test_the_state_of_a_gpu_is_its_facts_without_names_and_processes(build):
    """What changes while a GPU works is as in a whole reading; the rest is unread."""
    nvml = Nvml(str(build()))

    whole, state = nvml.read().gpus[1], nvml.state().gpus[1]

    nvml.close()
    still = ("uuid", "name", "bus_id", "minor", "total_mib", "reserved_mib", "power_limit_w")
    unread_there = {**dict.fromkeys(still), "processes": []}
    assert state == {**whole, **unread_there}
