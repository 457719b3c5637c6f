"""A report in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from eagleops.environment.folding import table
from eagleops.environment.nccl_variables import is_nccl
from eagleops.environment.story import TONES
from eagleops.phrases import counted, some
from eagleops.view import Text, Tone, View

if TYPE_CHECKING:
    from eagleops.environment.report import EnvReport, ProcessReport, VariableReport

MOST_PIDS_NAMED = 8


def conclusion(report: EnvReport) -> str:
    """The report in one line."""
    total, processes = len(report.expected), len(report.counted)
    parts = []
    if not processes:
        parts.append("no process whose environment counts was found")
    elif not total:
        parts.append(f"no variable is expected; {counted(processes, 'process')} read")
    else:
        parts.append(_in_effect(report))
        parts += _not_in_effect(report)
    if report.missing_workers:
        titles = ", ".join(worker.title for worker in report.missing_workers)
        workers = counted(len(report.missing_workers), "expected worker")
        parts.append(f"{workers} not there: {titles}")
    parts += _initial_witness(report)
    return "; ".join(parts)


def _in_effect(report: EnvReport) -> str:
    total, processes = len(report.expected), len(report.counted)
    everywhere = sum(
        all(process.variables[name].verdict.kind == "ok" for process in report.counted)
        for name in report.expected
    )
    variables, of_all = counted(total, "variable"), counted(processes, "process")
    return f"{everywhere} of {variables} in effect in {processes} of {of_all}"


def _not_in_effect(report: EnvReport) -> list[str]:
    found = Counter(
        (one.verdict.kind, name) for _, name, one in report.judged() if one.verdict.kind != "ok"
    )
    order = ("wrong", "missing", "unknown")
    return [
        f"{name} {kind} in {count} of {len(report.counted)}"
        for (kind, name), count in sorted(found.items(), key=lambda item: order.index(item[0][0]))
    ]


def _initial_witness(report: EnvReport) -> list[str]:
    blind = [process for process in report.counted if "overwritten" in process.initial]
    if not blind:
        return []
    if len(blind) == len(report.counted):
        whom = "it" if len(blind) == 1 else f"all {len(blind)} of them"
    else:
        whom = f"{len(blind)} of them"
    return [f"/proc/PID/environ is overwritten in {whom}, so it was not used"]


def view(report: EnvReport) -> View:
    """The table, what is not ok and why, and the conclusion."""
    tone = {0: Tone.GOOD, 1: Tone.BAD, 3: Tone.WARNING}[report.exit_status]
    notes = [
        *_problems(report.judged()),
        *_remarks(report),
        *_bystanders(report),
        *_proofs(report),
    ]
    head = ": ".join(filter(None, (report.host, report.server, report.conclusion)))
    return View((table(report),), Text(head, tone), tuple(notes))


def _problems(judged: Iterable[tuple[ProcessReport, str, VariableReport]]) -> list[Text]:
    """Each thing that is not ok once, with the processes that it holds for."""
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for process, name, one in judged:
        verdict = one.verdict
        if verdict.kind != "ok":
            why = ": ".join(filter(None, (verdict.kind, verdict.why)))
            key = (name, verdict.kind, "; ".join((why, *verdict.notes)), verdict.way_out)
            groups.setdefault(key, []).append(process.pid)
    return [
        Text(f"{name} {words} ({_pids(pids)})" + (f"\n  {way_out}" if way_out else ""), TONES[kind])
        for (name, kind, words, way_out), pids in groups.items()
    ]


def _remarks(report: EnvReport) -> list[Text]:
    """What is worth knowing though it is ok."""
    groups: dict[tuple[str, str], list[int]] = {}
    for process, name, one in report.judged():
        if one.verdict.kind == "ok":
            for note in one.verdict.notes:
                groups.setdefault((name, note), []).append(process.pid)
    remarks = [f"{name} ok, but {note} ({_pids(pids)})" for (name, note), pids in groups.items()]
    return [Text(remark, Tone.WARNING) for remark in (*remarks, *report.notes)]


def _bystanders(report: EnvReport) -> list[Text]:
    aside = [
        (process.pid, name)
        for process in report.processes
        if not process.counted and process.role is None
        for name, one in process.variables.items()
        if one.verdict.kind in {"wrong", "missing"}
    ]
    if not aside:
        return []
    names = ", ".join(dict.fromkeys(name for _, name in aside))
    pids = list(dict.fromkeys(pid for pid, _ in aside))
    return [
        Text(f"not counted, for it is no worker that is known ({_pids(pids)}): without {names}")
    ]


def _proofs(report: EnvReport) -> list[Text]:
    """What the good verdicts on NCCL's variables rest on."""
    verdicts = [
        one.verdict
        for _, name, one in report.judged()
        if is_nccl(name) and one.verdict.kind == "ok"
    ]
    proved = sum(verdict.proved for verdict in verdicts)
    if not verdicts:
        return []
    if proved == len(verdicts):
        rest = ""
    else:
        whys = Counter(aside for verdict in verdicts for aside in verdict.asides[-1:])
        why = f" ({whys.most_common(1)[0][0]})" if whys else ""
        rest = f"; the others rest on the live environment{why}"
    return [
        Text(
            f"NCCL's own log proves {proved} of {len(verdicts)} verdicts on its variables{rest}",
            Tone.DIM,
        )
    ]


def _pids(pids: list[int]) -> str:
    return f"PID {some(list(map(str, pids)), MOST_PIDS_NAMED)}"
