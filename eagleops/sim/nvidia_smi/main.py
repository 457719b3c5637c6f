"""The stand-in's command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from eagleops.sim import faults
from eagleops.sim.gpus import Gpu, read_gpus
from eagleops.sim.layout import Layout
from eagleops.sim.nvidia_smi.failures import FAILURES, LOST_STATUS
from eagleops.sim.nvidia_smi.query import Format, UnknownField, app_rows, chosen, gpu_rows


class Usage(Exception):
    """A command line that this stand-in does not understand; its text says why."""


class Request(NamedTuple):
    """What was asked for.

    Attributes:
        what: ``table``, ``list``, ``xml``, ``gpus``, ``apps``, ``topology``, ``versions``
            or ``help``.
        fields: Of a query.
        ids: Indices, UUIDs or bus ids of the GPUs that are meant; empty for all.
        interval_s: Asked anew each so many seconds; None for once.
    """

    what: str = "table"
    fields: str = ""
    form: Format = Format()
    ids: tuple[str, ...] = ()
    interval_s: float | None = None


_PLAIN = {
    "-L": "list",
    "--list-gpus": "list",
    "--version": "versions",
    "--help-query-gpu": "help",
    "-q": "xml",
    "--query": "xml",
    "-x": "xml",
    "--xml-format": "xml",
}
_LOOPS = {"-l": 1.0, "--loop": 1.0, "-lms": 0.001, "--loop-ms": 0.001}


def parse(arguments: Sequence[str]) -> Request:
    """The request of a command line.

    Raises:
        Usage: with the real one's words where there are any.
    """
    request = Request()
    if list(arguments[:2]) == ["topo", "-m"]:
        return request._replace(what="topology")
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag in _PLAIN and not equals:
            request = request._replace(what=_PLAIN[flag])
            continue
        if not equals:
            if not rest:
                raise Usage(_invalid(flag))
            value = rest.pop(0)
        request = _with_value(request, flag, value)
    if {"-q", "--query"} & set(arguments) and not {"-x", "--xml-format"} & set(arguments):
        raise Usage("The simulated nvidia-smi tells -q as XML alone: -q -x.")
    return request


def _with_value(request: Request, flag: str, value: str) -> Request:
    if flag in {"--query-gpu", "--query-compute-apps"}:
        what = "gpus" if flag == "--query-gpu" else "apps"
        return request._replace(what=what, fields=value)
    if flag == "--format":
        form = Format.parse(value)
        if form is None:
            raise Usage('"--format=" switch is missing or is not csv.')
        return request._replace(form=form)
    if flag in {"-i", "--id"}:
        return request._replace(ids=tuple(value.split(",")))
    if flag in _LOOPS and value.isdecimal():
        return request._replace(interval_s=int(value) * _LOOPS[flag])
    raise Usage(_invalid(flag))


def _invalid(flag: str) -> str:
    return (
        f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"
        f"(simulated nvidia-smi: {flag})"
    )


def answer(request: Request, gpus: Sequence[Gpu]) -> list[str]:
    """The lines that answer a request."""
    if request.what == "gpus":
        from eagleops.sim.nvidia_smi.fields import BY_NAME

        return gpu_rows(gpus, chosen(request.fields, BY_NAME), request.form)
    if request.what == "apps":
        return app_rows(gpus, request.fields, request.form)
    if request.what == "xml":
        from eagleops.sim.nvidia_smi.xml_document import document

        return [document(gpus)]
    if request.what == "help":
        from eagleops.sim.nvidia_smi.fields import help_text

        return [help_text()]
    from eagleops.sim.nvidia_smi import table

    if request.what == "versions":
        return [table.versions()]
    tell = {"table": table.table, "list": table.listing, "topology": table.topology}[request.what]
    return [tell(gpus)]


def run(layout: Layout, arguments: Sequence[str]) -> int:
    """Answers one command line on stdout and returns its exit status."""
    broken = faults.read(layout)["nvidia_smi"]
    time.sleep(float(broken.get("delay_s", 0.0)))
    if "error" in broken:
        status, text = FAILURES[broken["error"]]
        print(text)
        return status
    try:
        request = parse(arguments)
        while True:
            gpus = _meant(read_gpus(layout), request.ids)
            if not gpus:
                print("No devices were found")
                return 6
            print("\n".join(answer(request, gpus)), flush=True)
            if request.interval_s is None:
                return LOST_STATUS if any(gpu.lost for gpu in gpus) else 0
            time.sleep(request.interval_s)
    except UnknownField as error:
        print(f'Field "{error}" is not a valid field to query.\n')
        return 2
    except Usage as error:
        print(error)
        return 2


def _meant(gpus: Sequence[Gpu], ids: tuple[str, ...]) -> list[Gpu]:
    return [
        gpu
        for gpu in gpus
        if not ids or {str(gpu.number), gpu.uuid, gpu.bus_id, gpu.bus_id[4:]} & set(ids)
    ]


def main(root: str) -> None:
    """Entry point of the box's ``nvidia-smi``; ``root`` is the box's directory."""
    try:
        status = run(Layout(root), sys.argv[1:])
    except (BrokenPipeError, KeyboardInterrupt):
        status = 1
    sys.stdout.flush()
    raise SystemExit(status)
