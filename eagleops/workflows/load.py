"""Load: many requests at once, by the engine's own benchmark on the server's machine."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.errors import CheckFailed, OperationFailed, UsageError
from eagleops.machine import Machine
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.bench_subject import Subject, look
from eagleops.workflows.load_tools import LoadSpec, Tool, tool_for
from eagleops.workflows.progress import Progress, Step, events_of, unwatched

LIMIT_S = 3600.0
_LAST_LINES = 12


@attrs.frozen
class LoadResult:
    """What the engine's own benchmark measured.

    Attributes:
        tool: Which one, as a module or a program.
        argv: As it was run, there.
        figures: Its own JSON, whole.
        run_id: Its number in the ledger; None where it was not recorded.
        notice: Why it was not, or what was done to the ledger's file.
    """

    host: str
    server: str
    profile: str
    engine: str
    launch_id: str
    tool: str
    argv: tuple[str, ...]
    spec: LoadSpec
    figures: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    run_id: int | None = None
    notice: str = ""

    @property
    def ok(self) -> bool:
        """Whether every request was answered."""
        return self.completed is None or self.completed >= self.spec.requests

    @property
    def completed(self) -> int | None:
        """How many requests were answered; None where the tool does not say."""
        completed = self.figures.get("completed")
        return completed if isinstance(completed, int) else None

    def to_dict(self) -> dict[str, Any]:
        """The result as the ``bench --load --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "server": self.server,
            "profile": self.profile,
            "engine": self.engine,
            "tool": self.tool,
            "argv": list(self.argv),
            "load": attrs.asdict(self.spec),
            "completed": self.completed,
            "figures": dict(self.figures),
            "run_id": self.run_id,
            "notice": self.notice or None,
            "notes": list(self.notes),
        }

    def view(self) -> View:
        """The tool's figures as it names them."""
        rows = tuple(
            (name, f"{value:,.2f}" if isinstance(value, float) else str(value))
            for name, value in self.figures.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        )
        title = f"{self.host}: {self.server}, {self.spec.words}, by {self.tool}"
        table = Table((Column("figure"), Column("value", "right")), rows, title=title)
        notes = [Text(note, Tone.WARNING) for note in self.notes]
        if self.notice:
            notes.append(Text(self.notice, Tone.WARNING))
        return View((table,), self._conclusion(), tuple(notes))

    def _conclusion(self) -> Text:
        speed = self.figures.get("output_throughput")
        told = f"{speed:,.1f} output tok/s" if isinstance(speed, (int, float)) else "measured"
        done = "" if self.completed is None else f", {self.completed} requests answered"
        recorded = "" if self.run_id is None else f", recorded as run {self.run_id}"
        head = f"{self.host}: {self.server} {told} at {self.spec.words}{done}{recorded}"
        return Text(head, Tone.GOOD if self.ok else Tone.BAD)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def load(
    machine: Machine,
    name: str,
    spec: LoadSpec,
    *,
    limit_s: float = LIMIT_S,
    progress: Progress = unwatched,
) -> LoadResult:
    """Has the engine's own benchmark put load on the server ``name``.

    Args:
        machine: Where the server runs, and the benchmark with it.
        name: The server's.
        spec: How much.
        limit_s: The benchmark is ended after so long.
        progress: Told of its output as it comes.

    Raises:
        UsageError: if the server's engine has no benchmark of its own.
        CheckFailed: if the server cannot be measured, or the benchmark failed.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    progress(Step("look"))
    subject = look(machine, name)
    tool = tool_for(subject.server.engine, spec)
    output = f"{subject.server.state_dir}/load-{secrets.token_hex(4)}.json"
    program, argv = _run(machine, subject, tool, spec, output, limit_s, progress)
    return LoadResult(
        host=machine.name,
        server=name,
        profile=subject.server.profile,
        engine=subject.server.engine,
        launch_id=subject.server.launch_id,
        tool=program,
        argv=argv,
        spec=spec,
        figures=_figures(machine, name, tool.output_file(output)),
        notes=subject.notes,
    )


def _run(
    machine: Machine,
    subject: Subject,
    tool: Tool,
    spec: LoadSpec,
    output: str,
    limit_s: float,
    progress: Progress,
) -> tuple[str, tuple[str, ...]]:
    """Runs the first of the tool's programs that is installed there."""
    watch = events_of("load", progress)
    for program in tool.programs(subject.argv, machine.entry.python):
        argv = (*program, *tool.arguments(spec, subject, output))
        try:
            ended = machine.call(
                "execute",
                argv=list(argv),
                env_of=subject.server.name,
                tell=True,
                time_limit_s=limit_s,
                on_event=watch,
            )
        except OperationFailed as failed:
            if failed.kind == "not_found":
                continue
            raise
        said = _text(ended["stderr"]) + _text(ended["stdout"])
        if ended["exit_status"] == 0:
            return _name(program), argv
        if not tool.is_missing(program, said):
            raise _failed(machine, subject, program, ended["exit_status"], said)
    raise UsageError(
        problem=f"no benchmark of {subject.server.engine} is installed there",
        where=machine.name,
        way_out=tool.way_out,
    )


def _name(program: tuple[str, ...]) -> str:
    """The module, or the program without its folder."""
    first = program[0].rpartition("/")[2]
    return " ".join(program[2:] if program[1:2] == ("-m",) else (first, *program[1:]))


def _failed(
    machine: Machine, subject: Subject, program: tuple[str, ...], status: int, said: str
) -> CheckFailed:
    last = "\n".join(said.strip().splitlines()[-_LAST_LINES:])
    return CheckFailed(
        problem=f"{_name(program)} ended with status {status}:\n{last}",
        where=f"{machine.name}: {subject.server.name}",
        host=machine.name,
    )


def _figures(machine: Machine, name: str, path: str) -> dict[str, Any]:
    """The tool's result file: one JSON document, or the last line of several."""
    read = machine.call("execute", argv=["cat", "--", path])
    text = _text(read["stdout"]).strip()
    for candidate in (text, text.splitlines()[-1] if text else ""):
        try:
            document = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(document, dict):
            machine.call("execute", argv=["rm", "-f", "--", path])
            return document
    raise CheckFailed(
        problem=f"the benchmark ended well, but {path} holds no JSON",
        where=f"{machine.name}: {name}",
        host=machine.name,
    )


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode("utf-8", "replace")
