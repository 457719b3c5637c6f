"""A bench in the ledger: as parts of the run of the launch that it measured."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import attrs

from eagleops._version import __version__
from eagleops.errors import LedgerError
from eagleops.ledger import Header, Ledger, Run
from eagleops.machine import Machine
from eagleops.measuring.telemetry import windows
from eagleops.remote import process_table
from eagleops.server import ServerFacts
from eagleops.workflows.bench import Settings, bench
from eagleops.workflows.bench_result import BenchResult
from eagleops.workflows.load import LoadResult, load
from eagleops.workflows.load_tools import LoadSpec
from eagleops.workflows.progress import Progress, Step, unwatched
from eagleops.workflows.record import Recorded, server_parts

# The launch that is measured is among the latest on its host, or was never recorded.
LOOK_BACK = 200


def bench_and_record(
    path: Path | None,
    machine: Machine,
    name: str,
    settings: Settings | None = None,
    *,
    progress: Progress = unwatched,
    **more: Any,
) -> BenchResult:
    """Measures the server ``name`` and records the figures.

    Args:
        path: The ledger's file; None for the user's own.
        machine: Where the server runs.
        name: The server's.
        settings: What is asked of it.
        progress: Told of each run.
        more: As :func:`eagleops.workflows.bench.bench` takes it.

    Raises:
        EagleError: as :func:`eagleops.workflows.bench.bench`. A ledger that cannot be written
            costs no measurement: the result's notice tells it.
    """
    result = bench(machine, name, settings, progress=progress, **more)
    recorded = record_figures(path, machine, result, bench_parts(result), progress=progress)
    return attrs.evolve(result, run_id=recorded.run_id, notice=recorded.notice)


def load_and_record(
    path: Path | None,
    machine: Machine,
    name: str,
    spec: LoadSpec,
    *,
    progress: Progress = unwatched,
) -> LoadResult:
    """Puts load on the server ``name`` and records what its engine's benchmark measured.

    Args:
        path: The ledger's file; None for the user's own.
        machine: Where the server runs.
        name: The server's.
        spec: How much load.
        progress: Told of the benchmark's output.

    Raises:
        EagleError: as :func:`eagleops.workflows.load.load`.
    """
    result = load(machine, name, spec, progress=progress)
    body = {k: v for k, v in result.to_dict().items() if k not in {"run_id", "notice"}}
    # Beside a bench of one stream, not in its place: `samples` holds single measurements.
    parts = {"samples": [body], "outcome": {"outcome": "benched", "detail": spec.words}}
    recorded = record_figures(path, machine, result, parts, progress=progress)
    return attrs.evolve(result, run_id=recorded.run_id, notice=recorded.notice)


def bench_parts(result: BenchResult) -> dict[str, Any]:
    """The parts of a run that a bench tells."""
    body = result.to_dict()
    figures = {k: v for k, v in body.items() if k not in {"run_id", "notice", "measurements"}}
    return {
        "samples": body["measurements"],
        "telemetry": telemetry_part(result),
        "bench": figures,
        "outcome": {"outcome": "benched", "detail": ""},
    }


def telemetry_part(result: BenchResult) -> dict[str, Any]:
    """Each GPU over all runs, over each run, and the samples themselves."""
    return {
        "source": result.conditions.sampled_by,
        "sample_hz": result.conditions.sample_hz,
        "gpus": [gpu.to_dict() for gpu in windows(result.telemetry)],
        "runs": [
            {"number": run.number, "gpus": [gpu.to_dict() for gpu in run.gpus]}
            for run in result.measured
        ],
        "samples": [{"utc_s": s.utc_s, "gpus": list(s.gpus)} for s in result.telemetry],
    }


def record_figures(
    path: Path | None,
    machine: Machine,
    result: BenchResult | LoadResult,
    parts: dict[str, Any],
    *,
    progress: Progress = unwatched,
) -> Recorded:
    """Adds ``parts`` to the run of the launch that was measured; without one, to a new run."""
    progress(Step("record"))
    try:
        with Ledger.open(path) as ledger:
            run_id = run_of(ledger, result.host, result.server, result.launch_id)
            if run_id is None:
                run_id = ledger.add(_new_run(machine, result, parts))
            else:
                ledger.update(run_id, parts)
            return Recorded(run_id, ledger.notice)
    except LedgerError as error:
        return Recorded(None, f"This bench is not recorded: {error}")


def run_of(ledger: Ledger, host: str, server: str, launch_id: str) -> int | None:
    """The number of a launch's run; None where it is not among the latest of its host.

    Args:
        ledger: Where it is looked for.
        host: As in hosts.yaml.
        server: Its name there.
        launch_id: The launch's own.

    Raises:
        LedgerError: if the ledger cannot be read.
    """
    for header in ledger.runs(limit=LOOK_BACK, host=host):
        if header.server != server or header.id is None:
            continue
        run = ledger.run(header.id)
        ids = ((run.part("spec") or {}).get("launch_id"), _launched(run).get("launch_id"))
        if launch_id in ids:
            return header.id
    return None


def _launched(run: Run) -> dict[str, Any]:
    server = (run.part("launch") or {}).get("server")
    return server if isinstance(server, dict) else {}


def _new_run(machine: Machine, result: BenchResult | LoadResult, parts: dict[str, Any]) -> Run:
    """A run of a server whose launch is not in this ledger: what its machine tells, and this."""
    told = server_parts(machine, result.server)
    found = [one for one in machine.call("servers")["servers"] if one["name"] == result.server]
    server = ServerFacts.from_dict(found[0]).to_dict() if found else {}
    header = Header(
        host=result.host,
        server=result.server,
        profile=result.profile,
        engine=result.engine,
        model=(told.get("spec") or {}).get("model"),
        user=process_table.user(os.geteuid()),
        client=socket.gethostname(),
        eagleops=__version__,
    )
    return Run.begin(header, {**told, "launch": {"server": server}, **parts})
