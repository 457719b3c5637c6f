"""A container's health: its own GPUs, and its host's kernel log, in a real container."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.inventory import ContainerEntry, HostEntry
from eagleops.machine import Machine
from eagleops.nights.finding import Finding
from eagleops.transport.local import LocalTransport
from eagleops.workflows.nightly.gpu_health import only_own, read_health
from parts.container import Container

PYTHON = "/usr/bin/python3"
POOL = "/shared"
# One of the host's two GPUs is the container's.
NVIDIA_SMI = """\
#!/bin/sh
case "$1" in
-q) cat <<'END'
<nvidia_smi_log><gpu id="00000000:41:00.0"><uuid>GPU-1</uuid></gpu></nvidia_smi_log>
END
;;
*) echo "0, GPU-1" ;;
esac
"""
Judged = Callable[..., dict[str, Finding]]


@attrs.frozen
class Pair:
    """A host, and a container of it."""

    pve: Machine
    llm: Machine
    pool: Path

    def log(self, *xids: tuple[str, int], name: str = "kmsg") -> None:
        """What the kernel said: of each PCI bus a code."""
        at_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        lines = ["5,0,0,-;Linux"]
        lines += [f"4,9,{at_us},-;NVRM: Xid (PCI:0000:{bus}:00): {code}, x" for bus, code in xids]
        (self.pool / name).write_text("\n".join(lines) + "\n")


@pytest.fixture
def pair(tmp_path: Path, make_container: Callable[..., Container]) -> Iterator[Pair]:
    """The container has no kernel log; the host's is a file."""
    pool = tmp_path / "pool"
    pool.mkdir()
    for folder in (tmp_path, pool):
        folder.chmod(0o755)
    (pool / "nvidia-smi").write_text(NVIDIA_SMI)
    (pool / "nvidia-smi").chmod(0o755)
    container = make_container(mounts={str(pool): POOL})
    host = LocalTransport(where="pve")
    pve = Machine(
        "pve",
        HostEntry(name="pve", transport="local", python=PYTHON),
        host,
        {"nvml": False, "kernel_log": str(pool / "kmsg"), "state_home": str(tmp_path / "state")},
    )
    llm = Machine(
        "llm",
        ContainerEntry(name="llm", on="pve", vmid=container.vmid, python=PYTHON),
        container.inside(host),
        {
            "nvml": False,
            "path": f"{POOL}:{os.environ['PATH']}",
            "kernel_log": f"{POOL}/none",
            "state_home": "/tmp/state",
        },
        outer=pve,
    )
    made = Pair(pve, llm, pool)
    made.log()
    yield made
    llm.close()
    pve.close()


def codes(told: dict[str, Any]) -> list[int]:
    """The Xids that were told."""
    return [one["xid"] for one in told["xids"]]


def test_the_host_s_log_tells_of_the_container_s_gpus(pair: Pair, judged: Judged) -> None:
    """And what happened to another container's GPU is that one's."""
    pair.log(("41", 79), ("81", 48))

    told = read_health(pair.llm)

    assert codes(told) == [79]
    assert told["kernel_log"]["source"] == "kmsg of pve"
    assert judged(told)["xid"].message.startswith("GPU 0: Xid 79")


def test_a_log_that_the_container_can_read_is_its_host_s(pair: Pair) -> None:
    """The kernel's log knows no namespaces: it, too, is looked through for the own GPUs."""
    pair.log(("41", 63), ("81", 48), name="own")
    pair.llm.options["kernel_log"] = f"{POOL}/own"  # type: ignore[index]

    told = read_health(pair.llm)

    assert (codes(told), told["kernel_log"]["source"]) == ([63], "kmsg")


def test_a_gpu_that_the_container_has_lost_is_still_its_own(pair: Pair) -> None:
    """The last night knew it."""
    pair.log(("61", 79))
    before = read_health(pair.llm)
    before["time_utc"] = "2000-01-01T00:00:00.000Z"
    before["gpus"] = [*before["gpus"], {**before["gpus"][0], "bus_id": "00000000:61:00.0"}]

    assert codes(read_health(pair.llm)) == []
    assert codes(read_health(pair.llm, before)) == [79]


def test_a_host_that_cannot_be_asked_is_named(pair: Pair, judged: Judged) -> None:
    """Nothing is known of Xids then; everything else is."""
    down = attrs.evolve(pair.pve.entry, python="/no/such/python")
    llm = attrs.evolve(pair.llm, outer=Machine("pve", down, pair.pve.transport))

    told = read_health(llm)

    found = judged(told)["xid"]
    assert found.state == "skip"
    assert "its host pve cannot be asked" in found.message
    assert told["source"] == "nvidia-smi"
    llm.close()


def test_a_host_that_may_not_read_its_log_is_told_too(pair: Pair, judged: Judged) -> None:
    """Both reasons stand there."""
    (pair.pool / "kmsg").unlink()

    message = judged(read_health(pair.llm))["xid"].message

    assert f"{POOL}/none: No such file or directory" in message
    assert f"on its host pve: {pair.pool}/kmsg: No such file or directory" in message


def test_without_gpus_nothing_is_the_container_s(pair: Pair, judged: Judged) -> None:
    """An empty list must not look like a night without errors."""
    pair.log(("41", 79))
    told = only_own({**read_health(pair.llm), "gpus": []}, None)

    found = judged(told)["xid"]

    assert (found.state, told["xids"]) == ("skip", [])
    assert "which GPUs are this container's is not known" in found.message
