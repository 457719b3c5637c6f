"""The telemetry operation: how often, how quietly, and how it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagleops.errors import OperationFailed
from eagleops.inventory import HostEntry
from eagleops.machine import Machine
from eagleops.measuring.telemetry import samples_of
from eagleops.session import Session
from eagleops.sim.box import SimBox
from eagleops.workflows.sampling import Sampling
from parts.poll import until

GPUS = 8


@pytest.fixture
def box(tmp_path: Path) -> SimBox:
    """A box of eight GPUs, idle."""
    return SimBox.prepare(tmp_path / "box", gpus=GPUS)


@pytest.fixture
def session(box: SimBox) -> Iterator[Session]:
    """A session on it."""
    opened = Session.open(box.transport(), python=sys.executable, options=box.options)
    yield opened
    opened.close()


@pytest.fixture
def machine(box: SimBox) -> Iterator[Machine]:
    """The box as a machine."""
    entry = HostEntry(name="sim", transport="sim", python=sys.executable)
    made = Machine("sim", entry, box.transport(), box.options)
    yield made
    made.close()


@pytest.mark.alone
def test_five_samples_a_second_in_few_events(session: Session) -> None:
    """Through nvidia-smi, on eight GPUs: 5 Hz or faster, and two events a second on the link."""
    heard = [(time.monotonic(), event) for event in session.stream("telemetry", duration_s=3.0)]

    batches = [event for _, event in heard if event["event"] == "samples"]
    samples = samples_of(heard[:-1])
    assert len(samples) >= 15
    assert len(batches) <= 7
    assert heard[-1][1]["result"] == {"samples": len(samples), "problem": None}
    assert {len(sample.gpus) for sample in samples} == {GPUS}
    assert samples[0].gpus[0]["sm_clock_mhz"] == 180


def test_only_the_gpus_that_were_asked_for(session: Session) -> None:
    """``gpus`` names their indices."""
    events = list(session.stream("telemetry", duration_s=0.3, gpus=[2, 5]))

    batch = next(event for event in events if event["event"] == "samples")
    assert [row[0] for row in batch["samples"][0]["gpus"]] == [2, 5]


def test_it_ends_when_it_is_called_off(session: Session) -> None:
    """A stream that is closed leaves a session that answers the next question."""
    stream = session.stream("telemetry")
    assert next(stream)["source"] == "nvidia-smi"
    stream.close()

    assert session.usable
    assert len(session.call("snapshot")["gpus"]) == GPUS


@pytest.mark.alone
def test_the_last_samples_are_heard(machine: Machine) -> None:
    """What was sampled up to the end is there once the context is left."""
    with Sampling(machine) as sampling:
        until(lambda: sampling.latest)
        ended_s = time.monotonic()

    assert sampling.problem == ""
    assert sampling.samples[-1].at_s >= ended_s - 0.2
    assert [gpu["index"] for gpu in sampling.latest] == list(range(GPUS))


def test_gpus_that_cannot_be_read_are_a_problem_that_is_told(machine: Machine, box: SimBox) -> None:
    """A driver that does not answer costs no error; what it said is on record."""
    box.break_nvidia_smi(error="not_loaded")

    with Sampling(machine) as sampling:
        until(lambda: len(sampling.samples) > 1)

    assert sampling.samples[0].gpus == ()
    assert "communicate with the NVIDIA driver" in sampling.problem


def test_an_operation_without_a_source_ends(session: Session, tmp_path: Path) -> None:
    """Without NVML and nvidia-smi there is nothing to sample: it says so and ends."""
    options = {"nvml": False, "path": str(tmp_path)}
    blind = Session.open(SimBox.transport(SimBox.prepare(tmp_path / "b")), options=options)

    result = blind.call("telemetry")

    blind.close()
    assert result == {"samples": 0, "problem": "no nvidia-smi on PATH"}


def test_a_bad_interval_fails_alone(session: Session) -> None:
    """An interval that is no number is the operation's failure, and not the session's."""
    with pytest.raises(OperationFailed):
        session.call("telemetry", interval_s="often")

    assert session.usable
