"""One run on a machine with real NVIDIA GPUs: does what eagleops tells of them hold?

    python3 tests/gpu/nvml_and_smi.py > gpus.json

It reads every GPU through NVML and through nvidia-smi and compares the two, has children of
its own allocate memory on each GPU, finds them in a snapshot, ends them with the kill
operation and waits for the drain: once through NVML and once through nvidia-smi. It changes
no setting and signals nobody but its own children. It needs no package but the checkout:
the standard library and the driver. The exit status is 1 if a check does not hold.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]

if "eagleops" not in sys.modules:
    # The package's own __init__ is for the client and wants its dependencies.
    package = types.ModuleType("eagleops")
    package.__path__ = [str(CHECKOUT / "eagleops")]
    sys.modules["eagleops"] = package

from eagleops.remote import command  # noqa: E402
from eagleops.remote.context import Context  # noqa: E402
from eagleops.remote.drain import drain  # noqa: E402
from eagleops.remote.gpus import Gpus, read_minor  # noqa: E402
from eagleops.remote.kill import kill  # noqa: E402
from eagleops.remote.nvidia_smi import NvidiaSmi, parse_known_fields, question  # noqa: E402
from eagleops.remote.nvml import Nvml  # noqa: E402
from eagleops.remote.snapshot import snapshot  # noqa: E402

ALLOCATE_MIB = 8192
# Between two looks the machine does not stand still.
TOLERANCES = {
    "used_mib": 1,
    "reserved_mib": 1,
    "total_mib": 1,
    "temperature_c": 3,
    "power_w": 60,
    "power_limit_w": 0.01,
    "sm_clock_mhz": 2000,
    "mem_clock_mhz": 3000,
    "utilization_pct": 100,
}
EQUAL = ("uuid", "name", "bus_id", "pcie_gen", "pcie_width")

# Ignores SIGTERM, so that the kill must go on to SIGKILL.
ALLOCATE = """
import ctypes, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
cuda = ctypes.CDLL("libcuda.so.1")
def check(code):
    if code: sys.exit("libcuda returned %d" % code)
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
check(cuda.cuInit(0))
check(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[2]) << 20)))
print("ready", flush=True)
time.sleep(600)
"""


def run(operation: Callable[..., Any], options: dict[str, Any], **arguments: Any) -> Any:
    """An operation's result, with its events under ``events``."""
    results: list[dict[str, Any]] = []

    def steps() -> Iterator[dict[str, Any]]:
        results.append((yield from operation(Context(options), **arguments)))

    events = list(steps())
    return {**results[0], "events": events}


def time_ms(call: Callable[[], Any], times: int) -> dict[str, float]:
    """Median and worst of so many calls, in milliseconds."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        call()
        taken.append((time.perf_counter() - begun) * 1000)
    return {"median_ms": round(statistics.median(taken), 3), "worst_ms": round(max(taken), 3)}


def compare(nvml: list[dict[str, Any]], smi: list[dict[str, Any]]) -> list[str]:
    """Where the two tell different things."""
    wrong = []
    if [gpu["index"] for gpu in nvml] != [gpu["index"] for gpu in smi]:
        return [f"NVML has {[g['index'] for g in nvml]}, nvidia-smi {[g['index'] for g in smi]}"]
    for one, other in zip(nvml, smi, strict=True):
        wrong += [
            f"GPU {one['index']}: {fact}: {one[fact]!r} and {other[fact]!r}"
            for fact in EQUAL
            if one[fact] != other[fact]
        ]
        for fact, tolerance in TOLERANCES.items():
            told = (one[fact] is None, other[fact] is None)
            if told == (False, False) and abs(one[fact] - other[fact]) > tolerance:
                wrong.append(f"GPU {one['index']}: {fact}: {one[fact]} and {other[fact]}")
            elif told[0] != told[1]:
                wrong.append(f"GPU {one['index']}: {fact}: {one[fact]!r} and {other[fact]!r}")
        if one["bus_id"] and read_minor(one["bus_id"]) not in {None, one["minor"]}:
            wrong.append(f"GPU {one['index']}: minor {one['minor']} is not what /proc tells")
    return wrong


@contextlib.contextmanager
def children(gpus: list[dict[str, Any]]) -> Iterator[list[subprocess.Popen[str]]]:
    """A child on each GPU that holds memory there, and whatever happens is gone afterwards."""
    started: list[subprocess.Popen[str]] = []
    try:
        for gpu in gpus:
            argv = [sys.executable, "-c", ALLOCATE, str(gpu["index"]), str(ALLOCATE_MIB)]
            started.append(
                subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
        for child in started:
            assert child.stdout is not None
            assert child.stderr is not None
            if child.stdout.readline().strip() != "ready":
                raise RuntimeError(f"no memory was allocated: {child.stderr.read().strip()}")
        yield started
    finally:
        for child in started:
            child.kill()
            child.wait(30)


def truth(indices: list[int], levels: dict[str, int], stop: threading.Event) -> dict[str, Any]:
    """Polls NVML as fast as it goes, on a handle of its own, until told to stop."""
    nvml, curve, released_s = Nvml(), [], None
    last: tuple[Any, ...] = ()
    while not stop.is_set():
        used = tuple(gpu["used_mib"] for gpu in nvml.memory().gpus if gpu["index"] in indices)
        now = time.monotonic()
        if used != last:
            curve.append([now, list(used)])
            idle = all(mib <= levels[str(i)] for i, mib in zip(indices, used, strict=True))
            released_s, last = now if idle else None, used
        time.sleep(0.001)
    nvml.close()
    return {"curve": curve, "released_s": released_s}


def one_round(options: dict[str, Any], levels: dict[str, int]) -> dict[str, Any]:
    """Allocate, look, kill, drain; what was seen, and what did not hold."""
    with Gpus(Context(options)) as gpus:
        before = gpus.read()
    wrong: list[str] = []
    with children(before.gpus) as started:
        pids = [child.pid for child in started]
        seen = run(snapshot, options, servers=False)
        found = [process for process in seen["processes"] if process["pid"] in pids]
        for child, gpu in zip(started, before.gpus, strict=True):
            wrong += _complaints(child.pid, gpu, found)
        targets = [{key: p[key] for key in ("pid", "start_ticks")} for p in found]
        stop, observed = threading.Event(), []
        indices = [gpu["index"] for gpu in before.gpus]
        watcher = threading.Thread(target=lambda: observed.append(truth(indices, levels, stop)))
        watcher.start()
        begun = time.monotonic()
        killed = run(kill, options, targets=targets, grace_s=0.0)
        drain_begun = time.monotonic()
        drained = run(drain, options, idle_mib=levels, timeout_s=30)
        time.sleep(0.3)
        stop.set()
        watcher.join()
    if killed["left"] or {one["pid"] for one in killed["killed"]} != set(pids):
        wrong.append(f"not all were killed: {killed}")
    noticed_s = None
    if drained["drained"] and observed[0]["released_s"] is not None:
        noticed_s = drain_begun + drained["drain_s"] - observed[0]["released_s"]
        if not -0.05 <= noticed_s <= 0.1:
            wrong.append(f"the release was noticed {noticed_s:.3f} s after it happened")
    else:
        wrong.append("the GPUs did not drain")
    return {
        "source": seen["gpu_source"],
        "found": found,
        "gpu_processes": {gpu["index"]: gpu["processes"] for gpu in seen["gpus"]},
        "killed": killed["killed"],
        "kill_s": drain_begun - begun,
        "drain": {key: drained[key] for key in ("drained", "drain_s", "elapsed_s", "problem")},
        "drain_events": drained["events"],
        "true_curve_s": [[at - begun, used] for at, used in observed[0]["curve"]],
        "noticed_s": noticed_s,
        "wrong": wrong,
    }


def _complaints(pid: int, gpu: dict[str, Any], found: list[dict[str, Any]]) -> Iterator[str]:
    facts = next((process for process in found if process["pid"] == pid), None)
    if facts is None:
        yield f"PID {pid}: the snapshot does not show it"
        return
    if gpu["index"] not in facts["gpu_devices"]:
        yield f"PID {pid} holds GPU {gpu['index']}, the snapshot says {facts['gpu_devices']}"
    used_mib = facts["gpu_mib"].get(gpu["uuid"])
    if used_mib is None or used_mib < ALLOCATE_MIB:
        yield f"PID {pid} holds {ALLOCATE_MIB} MiB, the driver's list says {used_mib}"


def main() -> int:
    """Runs the checks and prints what was seen as JSON."""
    context = Context({})
    begun = time.perf_counter()
    nvml = Nvml()
    opened_ms = (time.perf_counter() - begun) * 1000
    program = command.find(context, "nvidia-smi") or "nvidia-smi"
    smi = NvidiaSmi(context, program)
    by_nvml, by_smi = nvml.read(), smi.read()
    wrong = compare(by_nvml.gpus, by_smi.gpus)
    if by_nvml.driver_version != by_smi.driver_version:
        wrong.append(f"driver: {by_nvml.driver_version} and {by_smi.driver_version}")
    fields = ",".join(field for _, field in question())
    answer = command.run(
        context, [program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"], 20
    )
    listed = command.run(context, [program, "--help-query-gpu"], 20).stdout
    unknown = sorted({field for _, field in question()} - parse_known_fields(listed))
    levels = {str(gpu["index"]): (gpu["used_mib"] or 0) + 100 for gpu in by_nvml.gpus}
    report: dict[str, Any] = {
        "nvml": by_nvml._asdict(),
        "nvidia_smi": by_smi._asdict(),
        "nvidia_smi_answer": answer.stdout,
        "fields_that_the_help_does_not_list": unknown,
        "help_query_gpu": listed,
        "cost": {
            "nvml_open_ms": round(opened_ms, 3),
            "nvml_memory": time_ms(nvml.memory, 200),
            "nvml_read": time_ms(nvml.read, 20),
            "nvidia_smi_memory": time_ms(smi.memory, 10),
            "nvidia_smi_read": time_ms(smi.read, 5),
        },
        "idle_levels": levels,
        "rounds": [],
    }
    nvml.close()
    for options in ({"nvml": True}, {"nvml": False}):
        try:
            done = one_round(options, levels)
        except Exception as error:  # noqa: BLE001 - what was seen so far is worth printing
            done = {"wrong": [f"{options}: {type(error).__name__}: {error}"]}
        report["rounds"].append(done)
        wrong += done["wrong"]
    report["wrong"] = wrong
    print(json.dumps(report, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
