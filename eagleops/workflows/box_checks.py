"""Doctor's verdicts on how a GPU machine is set up: pure functions of what it told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.workflows.check import Check, State

# Every client of a server is a file, and so is every shard of a model.
NOFILE = 4096
# InfiniBand registers memory against this limit: the old default of 64 KiB stops it at its start.
MEMLOCK_BYTES = 1 << 20
# A model's download needs about its own size; below this even a small one fails.
MODEL_MIB = 1024


def judge_box(facts: Mapping[str, Any], *, nofile: int, memlock: int, gpus: int) -> Iterator[Check]:
    """Every verdict on what :func:`eagleops.remote.box_facts.box_facts` read.

    Args:
        facts: Its result, and ``persistence``: the mode of each GPU.
        nofile: Soft limit of open files.
        memlock: Soft limit of locked memory in bytes; -1 for none.
        gpus: How many GPUs the machine has.
    """
    yield from _persistence(facts.get("persistence") or [])
    yield from _peers(facts, gpus)
    yield _limits(nofile, memlock)
    yield from _memory(facts)
    yield from _devices(facts["control_devices"], gpus)
    if facts["tmp_noexec"]:
        yield Check(
            "tmp",
            "warn",
            "/tmp is mounted noexec: SGLang starts its workers through a script there where it "
            "binds them to NUMA nodes. Set TMPDIR, or SGLANG_NUMA_BIND_V2=0.",
        )
    for room in facts["paths"]:
        yield _room(room)


def _persistence(modes: list[str | None]) -> Iterator[Check]:
    known = [mode for mode in modes if mode]
    off = sum(mode != "Enabled" for mode in known)
    if off:
        yield Check(
            "persistence",
            "warn",
            f"persistence mode is off on {off} of {len(known)} GPUs: each start initialises them "
            "anew, and clocks and limits are forgotten. Run nvidia-persistenced on the host.",
        )
    elif known:
        yield Check("persistence", "pass", "on")


def _peers(facts: Mapping[str, Any], gpus: int) -> Iterator[Check]:
    """ACS and the IOMMU, which stand between GPUs that talk over PCIe."""
    acs, iommu = facts["acs"], facts["gpu_iommu"] or []
    translating = [kind for kind in iommu if kind.startswith("DMA")]
    redirecting = acs["redirecting"] if acs else []
    problems = []
    if translating:
        problems.append(f"the IOMMU translates for {len(translating)} GPUs ({translating[0]})")
    if redirecting:
        problems.append(
            f"ACS redirects peer requests on {len(redirecting)} of {acs['bridges']} bridges "
            f"({', '.join(redirecting[:3])})"
        )
    if problems and gpus > 1:
        yield Check(
            "p2p",
            "warn",
            f"{' and '.join(problems)}: P2P over PCIe is then slow, or hangs at the first "
            "all-reduce. On a host without VMs: iommu=pt, ACS off in the BIOS. A host that passes "
            "devices to VMs needs both: there, NCCL_P2P_DISABLE=1.",
        )
    elif acs is None and gpus > 1:
        yield Check("p2p", "pass", "nothing seen against it; ACS is for root on the host to read")
    elif gpus > 1:
        yield Check("p2p", "pass", "neither ACS nor the IOMMU stands between the GPUs")


def _limits(nofile: int, memlock: int) -> Check:
    problems = []
    if nofile < NOFILE:
        problems.append(f"{nofile} open files (ulimit -n)")
    if 0 <= memlock < MEMLOCK_BYTES:
        problems.append(f"{memlock // 1024} KiB of locked memory (ulimit -l)")
    if problems:
        raised = "Raise it in /etc/security/limits.conf, or the container's configuration."
        return Check("ulimits", "warn", f"no more than {' and '.join(problems)}. {raised}")
    locked = "no limit" if memlock < 0 else f"{memlock >> 20:,} MiB"
    return Check("ulimits", "pass", f"{nofile:,} open files, locked memory: {locked}")


def _memory(facts: Mapping[str, Any]) -> Iterator[Check]:
    if (facts["numa_nodes"] or 1) > 1 and facts["numa_balancing"]:
        yield Check(
            "numa",
            "warn",
            f"kernel.numa_balancing is {facts['numa_balancing']} on {facts['numa_nodes']} nodes: "
            "it moves pages under the engine's feet. sysctl kernel.numa_balancing=0",
        )
    elif facts["numa_nodes"]:
        yield Check("numa", "pass", f"{facts['numa_nodes']} NUMA node(s)")
    if facts["thp"]:
        state: State = "warn" if facts["thp"] == "never" else "pass"
        hint = ": loading a model is slower. Choose madvise." if state == "warn" else ""
        yield Check("hugepages", state, f"transparent huge pages: {facts['thp']}{hint}")


def _devices(devices: Mapping[str, str], gpus: int) -> Iterator[Check]:
    wrong = [f"/dev/nvidia{name}: {seen}" for name, seen in devices.items() if seen != "ok"]
    if wrong and gpus:
        yield Check(
            "device-files",
            "fail" if "absent" not in " ".join(wrong) else "warn",
            f"{'; '.join(wrong)}. CUDA needs them: in a container, bind them and allow their major "
            "numbers (lxc.cgroup2.devices.allow); -uvm comes by `nvidia-modprobe -u` on the host.",
        )
    elif gpus:
        yield Check("device-files", "pass", "nvidiactl and nvidia-uvm can be opened")


def _room(room: Mapping[str, Any]) -> Check:
    path, free_mib = room["path"], room["free_mib"]
    if not room["there"]:
        return Check("model", "warn", f"there is no {path}")
    if free_mib is not None and free_mib < MODEL_MIB:
        return Check("model", "warn", f"{path} is there; {free_mib:,} MiB are free beside it")
    return Check("model", "pass", f"{path} is there, {free_mib:,} MiB free beside it")
