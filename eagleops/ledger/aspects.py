"""A run as lines that can be compared with another run's: pure, from its recorded parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from eagleops.ledger.flags import flags_of, program_of
from eagleops.ledger.lines import Line, Measured
from eagleops.ledger.run import Run
from eagleops.remote.redact import REDACTED

# Names of one launch, with no effect on what runs.
OF_ONE_LAUNCH = {"EAGLEOPS_SERVER", "EAGLEOPS_LAUNCH_ID", "NCCL_DEBUG_FILE"}
HASH_DIGITS = 12


# The parts that a section's lines are made of.
Part = Mapping[str, Any]


def lines_of(run: Run, parts: Iterable[str], *, with_times: bool) -> Iterator[Line]:
    """The lines of those parts of a run that were recorded.

    Args:
        run: Which.
        parts: The names of parts, of those in :data:`READERS`.
        with_times: Whether files' times say anything: a copy on another host has others.
    """
    for name in parts:
        body = run.part(name)
        if isinstance(body, Mapping):
            yield from READERS[name](body)
            if name == "models":
                yield from _model_files(body, with_times=with_times)


def _told(section: str, what: str, value: Any, gpu: int | None = None) -> Iterator[Line]:
    """A line, unless the fact was not told: "None" would look like one."""
    if value is not None:
        yield Line(section, what, str(value), gpu)


def _spec(body: Part) -> Iterator[Line]:
    for name, value in sorted((body.get("env") or {}).items()):
        if name not in OF_ONE_LAUNCH:
            yield Line("env", name, str(value))
    argv = [str(word) for word in body.get("argv") or ()]
    yield Line("args", "program", " ".join(program_of(argv)))
    yield Line("args", "folder", str(body.get("cwd") or ""))
    for flag, value in flags_of(argv).items():
        yield Line("args", flag, value)


def _environment(body: Part) -> Iterator[Line]:
    """What was in effect in the workers, and what NCCL reads beside it.

    An engine's own doing shows here alone, and so does a conf file that somebody edited.
    """
    seen: dict[str, set[str]] = {}
    for process in body.get("processes") or ():
        if not process.get("counted", True):
            continue
        for name, witnessed in (process.get("variables") or {}).items():
            value = witnessed.get("effective") or witnessed.get("live")
            if value is not None and name not in OF_ONE_LAUNCH and REDACTED not in str(value):
                seen.setdefault(name, set()).add(str(value))
    for name, values in sorted(seen.items()):
        yield Line("env", f"{name} in the workers", " or ".join(sorted(values)))
    for path, settings in sorted((body.get("conf_files") or {}).items()):
        for name, value in sorted(settings.items()):
            yield Line("env", f"{name} in {path}", str(value))


def _packages(body: Part) -> Iterator[Line]:
    python = body.get("python") or {}
    yield from _told("versions", "Python", python.get("version"))
    yield from _told("versions", "Python's place", python.get("executable"))
    for package in body.get("distributions") or ():
        yield from _told("versions", str(package["name"]), package["version"])
    for compared in body.get("compared") or ():
        yield from _patches(compared)


def _patches(compared: Part) -> Iterator[Line]:
    name = compared["name"]
    if not compared["checked"]:
        yield Line("patches", f"{name}: files", f"not compared: {compared['problem']}")
    for change in compared["modified"]:
        yield Line("patches", f"{name}: {change['path']}", _file(change))
    checkout = compared.get("checkout") or {}
    if checkout:
        yield from _told("patches", f"{name}: commit", checkout["commit"])
    for change in checkout.get("dirty") or ():
        yield Line("patches", f"{name}: {change['path']}", _file(change))
    if compared.get("shadowed_by"):
        yield Line("patches", f"{name}: shadowed by", str(compared["shadowed_by"]))


def _file(change: Part) -> str:
    digest = str(change.get("sha256") or "")
    told = f" (sha256 {digest[:HASH_DIGITS]}, {change.get('bytes')} bytes)" if digest else ""
    return f"{change['state']}{told}"


def _models(body: Part) -> Iterator[Line]:
    for model in body.get("models") or ():
        role = model["role"]
        yield Line("model", role, str(model["name"]))
        if model.get("revision"):
            yield Line("model", f"{role}: revision", str(model["revision"]))


def _model_files(body: Part, *, with_times: bool) -> Iterator[Line]:
    for model in body.get("models") or ():
        for file in model.get("files") or ():
            if file.get("sha256"):
                value = f"sha256 {file['sha256'][:HASH_DIGITS]}"
            elif with_times:
                value = f"{file['bytes']} bytes of time {file['mtime_s']}"
            else:
                value = f"{file['bytes']} bytes"
            yield Line("model", f"{model['role']}: {file['path']}", value)


def _libraries(body: Part) -> Iterator[Line]:
    for library in body.get("libraries") or ():
        name = "NCCL" if library["name"] == "nccl" else library["name"]
        version = library["version"] or "version unknown"
        replaced = ", replaced on disk since" if library.get("replaced") else ""
        yield Line("versions", f"{name} loaded", f"{version}{replaced} ({library['path']})")


def _gpus(body: Part) -> Iterator[Line]:
    yield from _told("versions", "driver", body.get("driver_version"))
    yield from _told("versions", "CUDA of the driver", body.get("cuda_version"))
    yield from _told("machine", "topology", body.get("topology"))
    for gpu in body.get("gpus") or ():
        for fact, value in gpu.items():
            if fact in GPU_IDENTITY:
                yield from _told("machine", GPU_IDENTITY[fact], value, gpu["index"])
            elif fact != "index":
                yield from _told("clocks", fact, value, gpu["index"])


GPU_IDENTITY = {"uuid": "UUID", "name": "name", "bus_id": "bus", "total_mib": "memory MiB"}


def _machine(body: Part) -> Iterator[Line]:
    versions = {"kernel": "kernel", "os": "system", "proxmox": "Proxmox"}
    for fact, value in body.items():
        if fact == "outer":
            if isinstance(value, Mapping):
                yield from (
                    attrs.evolve(line, what=f"host's {line.what}") for line in _machine(value)
                )
        elif fact in versions:
            yield from _told("versions", versions[fact], value)
        elif fact == "numa":
            yield from (
                Line("machine", f"NUMA node {node['node']}", f"CPUs {node['cpus']}")
                for node in value or ()
            )
        elif isinstance(value, Mapping):
            yield Line("machine", fact, ", ".join(f"{k}: {v}" for k, v in sorted(value.items())))
        else:
            yield from _told("machine", fact, value)


def _snapshot(body: Part) -> Iterator[Line]:
    for gpu in body.get("gpus") or ():
        reasons = [reason for reason in gpu.get("throttle_reasons") or () if reason != "gpu_idle"]
        yield Line("clocks", "throttled at launch", ", ".join(reasons) or "no", gpu["index"])
        if gpu.get("pcie_width") is not None:
            yield Line("clocks", "PCIe width", str(gpu["pcie_width"]), gpu["index"])


# A metric of telemetry: its unit, and the difference that counts.
METRICS = {
    "sm_clock_mhz": ("MHz", 0.02, 0.0),
    "mem_clock_mhz": ("MHz", 0.02, 0.0),
    "temperature_c": ("°C", 0.0, 5.0),
    "power_w": ("W", 0.05, 5.0),
    "pcie_gen": ("", 0.0, 0.0),
    "pcie_width": ("", 0.0, 0.0),
}
SHARE_THAT_COUNTS = 0.05


def _telemetry(body: Part) -> Iterator[Line]:
    for gpu in body.get("gpus") or ():
        index = gpu.get("index")
        for metric, (unit, share, least) in METRICS.items():
            told = gpu.get(metric)
            value = told.get("median") if isinstance(told, Mapping) else told
            if isinstance(value, (int, float)):
                measured = Measured(float(value), unit, share, least)
                yield Line("clocks", f"{metric} while measured", measured, index)
        for reason, share_of_time in (gpu.get("throttled") or {}).items():
            measured = Measured(100 * share_of_time, "%", 0.0, 100 * SHARE_THAT_COUNTS)
            yield Line("clocks", f"throttled by {reason}", measured, index)


READERS = {
    "spec": _spec,
    "environment": _environment,
    "packages": _packages,
    "models": _models,
    "libraries": _libraries,
    "gpus": _gpus,
    "machine": _machine,
    "snapshot": _snapshot,
    "telemetry": _telemetry,
}
