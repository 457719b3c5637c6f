"""What a bench measures: the server as it was launched, its GPUs, and who else is on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.errors import CheckFailed
from eagleops.machine import Machine
from eagleops.measuring import findings
from eagleops.measuring.telemetry import Sample
from eagleops.process import bystander
from eagleops.server import ServerFacts
from eagleops.snapshot import Snapshot

# SGLang's switch that makes acceptance up (its environ.py): the speed is then no speed.
SIMULATED_ACCEPTANCE = "SGLANG_SIMULATE_ACC_LEN"


@attrs.frozen
class Subject:
    """A server that can be measured.

    Attributes:
        gpus: Indices of the GPUs that it holds; empty where that cannot be seen.
        links: Of each GPU by index ``max_pcie_gen`` and ``max_pcie_width``.
        argv: Its command.
        notes: What was off before anything was asked of it.
    """

    server: ServerFacts
    port: int
    gpus: frozenset[int]
    links: Mapping[int, Mapping[str, Any]]
    argv: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def own(self, sample: Sample) -> Sample:
        """``sample`` without the GPUs that the server does not hold."""
        if not self.gpus:
            return sample
        mine = tuple(gpu for gpu in sample.gpus if gpu["index"] in self.gpus)
        return attrs.evolve(sample, gpus=mine)


def look(machine: Machine, name: str) -> Subject:
    """The server ``name``, if it can be measured.

    Raises:
        CheckFailed: if it does not live, has no port, or makes its acceptance up.
        OperationFailed: ``no_such_server``.
        Unreachable: if the machine cannot be reached.
    """
    snapshot = Snapshot.from_dict(machine.call("snapshot"))
    seen = machine.call("environ", name=name, names=[SIMULATED_ACCEPTANCE])
    server = ServerFacts.from_dict(seen["server"])
    port = _port(machine, server)
    setup = machine.call("installation", server=name, packages=[], models=[])
    launched = (setup["spec"] or {}).get("env") or {}
    values = [*_values(seen["processes"]), *_launched_with(launched)]
    _refuse_simulated(machine, server, values)
    gpus = findings.gpus_of(snapshot.processes, name)
    holders = [process for process in snapshot.processes if not bystander(process)]
    return Subject(
        server,
        port,
        gpus,
        {gpu["index"]: gpu for gpu in (setup["gpus"] or {}).get("gpus") or ()},
        tuple((setup["spec"] or {}).get("argv") or ()),
        findings.others(holders, name, gpus),
    )


def _port(machine: Machine, server: ServerFacts) -> int:
    if server.is_alive and server.state != "starting" and server.port is not None:
        return server.port
    what = f"it is {server.state}" if server.port is not None else "its profile names no port"
    raise CheckFailed(
        problem=f"{server.name} cannot be measured: {what}",
        where=machine.name,
        way_out="Measure one that is ready: eagleops status.",
        host=machine.name,
    )


def _refuse_simulated(machine: Machine, server: ServerFacts, values: list[tuple[str, str]]) -> None:
    for place, value in values:
        with contextlib.suppress(ValueError):
            if float(value) <= 0:  # SGLang's own default, which is off
                continue
        raise CheckFailed(
            problem=f"{SIMULATED_ACCEPTANCE}={value} {place}: "
            "the server makes its acceptance up, and its speed would be made up with it",
            where=f"{machine.name}: {server.name}",
            way_out=f"Launch it without {SIMULATED_ACCEPTANCE}.",
            host=machine.name,
        )


def _launched_with(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What the launch's own record says: it can be read where no process can."""
    if value := env.get(SIMULATED_ACCEPTANCE):
        yield "in what it was launched with", value


def _values(processes: list[Any]) -> Iterator[tuple[str, str]]:
    for process in processes:
        for witness in ("live", "initial"):
            value = (process[witness].get("variables") or {}).get(SIMULATED_ACCEPTANCE)
            if isinstance(value, str) and value:
                yield f"in PID {process['pid']} ({process['title']})", value
