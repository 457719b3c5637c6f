"""The operation itself: through a session, under the oldest Python, with a driver that sulks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eagleops.errors import OperationFailed
from eagleops.session import Session
from eagleops.sim.box import SimBox
from eagleops.transport.local import LocalTransport
from parts import needs

DATA = Path(__file__).parents[1] / "data" / "gpus"
Ask = Callable[..., dict[str, Any]]


def test_every_fact_of_a_box_is_told(box: SimBox, health: Ask) -> None:
    """What the GPUs, the driver and the kernel's log say, with the machine's time."""
    box.log_xid(2, 79, 'a backslash \\, a "quote" and ü')

    told = health()

    assert set(told) == {
        "time_utc",
        "since_utc",
        "known",
        "source",
        "problem",
        "driver_version",
        "gpus",
        "xids",
        "kernel_log",
    }
    assert [gpu["index"] for gpu in told["gpus"]] == [0, 1, 2, 3]
    assert (told["source"], told["problem"], told["driver_version"]) == (
        "nvidia-smi",
        None,
        "580.159.04",
    )
    (xid,) = told["xids"]
    assert (xid["bus_id"], xid["text"]) == (
        told["gpus"][2]["bus_id"],
        'a backslash \\, a "quote" and ü',
    )
    assert told["kernel_log"] == {
        "source": "kmsg",
        "problem": None,
        "from_utc": told["kernel_log"]["from_utc"],
        "lines": 2,
    }


def test_a_time_that_is_none_is_refused(box: SimBox) -> None:
    """Before anything is read."""
    session = Session.open(box.transport(), options=box.options)

    with pytest.raises(OperationFailed, match="'yesterday' is no time") as refusal:
        session.call("health", since_utc="yesterday")

    assert refusal.value.kind == "bad_argument"
    session.close()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Ask]:
    """``driver(script)``: what is told where nvidia-smi is that shell script."""
    opened: list[Session] = []

    def ask(script: str, python: str = "python3") -> dict[str, Any]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "nvidia-smi").chmod(0o755)
        options = {"nvml": False, "path": f"{folder}:/usr/bin:/bin"}
        opened.append(Session.open(LocalTransport(), python=python, options=options))
        return opened[-1].call("health")

    yield ask
    for session in opened:
        session.close()


def test_the_oldest_python_reads_a_real_document(driver: Ask) -> None:
    """3.8, of which `datetime` reads no Z."""
    told = driver(f"cat {DATA}/health-h200-580.xml", needs.python("3.8"))

    assert [gpu["name"] for gpu in told["gpus"]] == ["NVIDIA H200"] * 2
    assert told["time_utc"].endswith("Z")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'No devices were found'; exit 6", "the driver is loaded and shows no GPU here"),
        (
            "echo 'Unable to determine the device handle for GPU 0: Unknown Error'; exit 255",
            "fallen off the PCIe bus",
        ),
        ("echo '<nvidia_smi_log><gpu>'; exit 0", "listed no GPU: <nvidia_smi_log><gpu>"),
        ("exit 0", "nvidia-smi listed no GPU: no output"),
    ],
)
def test_a_driver_that_tells_no_gpu_says_why(driver: Ask, script: str, words: str) -> None:
    """Whatever it prints in place of a document."""
    told = driver(script)

    assert (told["source"], told["gpus"]) == ("none", [])
    assert words in told["problem"]


def test_a_machine_without_a_driver_says_so(tmp_path: Path) -> None:
    """Its kernel's log is read all the same."""
    options = {"nvml": False, "path": str(tmp_path)}
    session = Session.open(LocalTransport(), options=options)

    told = session.call("health")

    assert (told["source"], told["problem"]) == ("none", "no nvidia-smi on PATH")
    assert "source" in told["kernel_log"]
    session.close()
