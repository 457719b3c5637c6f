"""The story of one variable in one process: what each witness saw, and who changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from eagleops.environment import nccl_variables as nccl
from eagleops.environment.values import Value, quoted
from eagleops.environment.witnesses import Effective, Initial, Live
from eagleops.view import Column, Table, Text, Tone, View

if TYPE_CHECKING:
    from eagleops.environment.report import VariableReport

TONES = {"ok": Tone.GOOD, "wrong": Tone.BAD, "missing": Tone.BAD, "unknown": Tone.WARNING}


@attrs.frozen
class Story:
    """What there is to tell of one variable in one process.

    Attributes:
        head: The variable, the process and the verdict.
        witnesses: Pairs of a witness and what it says.
        facts: When it is read, where its value came from, what the verdict rests on.
        way_out: What to do; empty where nothing needs doing.
    """

    variable: str
    pid: int
    kind: str
    head: str
    witnesses: tuple[tuple[str, str], ...]
    facts: tuple[str, ...]
    way_out: str

    @property
    def text(self) -> str:
        """The story as plain lines."""
        lines = [self.head]
        lines += [f"  {name:<10} {says}" for name, says in self.witnesses]
        lines += [f"  {fact}" for fact in self.facts]
        return "\n".join([*lines, *([f"  {self.way_out}"] if self.way_out else [])])

    def to_dict(self) -> dict[str, Any]:
        """The story as JSON."""
        return {
            "variable": self.variable,
            "pid": self.pid,
            "verdict": self.kind,
            "witnesses": dict(self.witnesses),
            "facts": list(self.facts),
            "way_out": self.way_out,
        }

    def view(self) -> View:
        """A row a witness, and under them the facts."""
        table = Table((Column("witness", wrap=False), Column("says")), self.witnesses)
        notes = tuple(Text(fact) for fact in (*self.facts, self.way_out) if fact)
        return View((table,), Text(self.head, TONES[self.kind]), notes)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def story(pid: int, label: str, one: VariableReport) -> Story:
    """Tells of one variable in the process ``pid``, which is called ``label``."""
    witnesses, verdict = one.witnesses, one.verdict
    name = witnesses.name
    what = f"expected {quoted(one.expected)}" if one.expected is not None else "expected not set"
    who = f"PID {pid}" if label == f"PID {pid}" else f"{label}, PID {pid}"
    because = f": {verdict.why}" if verdict.why else ""
    return Story(
        variable=name,
        pid=pid,
        kind=verdict.kind,
        head=f"{name} in {who}, {what}: {verdict.kind}{because}",
        witnesses=(
            ("initial", _initial(pid, witnesses.initial)),
            ("live", _live(witnesses.live)),
            ("effective", _effective(name, witnesses.effective)),
        ),
        facts=(nccl.when_read(name), *verdict.notes, *verdict.asides),
        way_out=verdict.way_out,
    )


def _initial(pid: int, initial: Initial) -> str:
    place = f"/proc/{pid}/environ"
    match initial.state:
        case "whole":
            return f"{place} is whole: {_given(initial.value, 'it was started')}"
        case "partly_overwritten":
            overwritten = (
                f"the first {initial.overwritten_bytes} of {initial.size} bytes of {place} were "
                "written over, as setproctitle does"
            )
            if initial.value is None:
                return f"{overwritten}; what is left does not show it, which says nothing"
            return f"{overwritten}; what is left shows {quoted(initial.value)}"
        case "overwritten":
            return (
                f"all {initial.size} bytes of {place} were written over, as setproctitle does: "
                "that says nothing"
            )
        case "empty":
            return f"{place} is empty: it has no memory of its own"
        case "unreadable":
            return f"{place} cannot be read: {initial.why}"


def _given(value: Value | None, lead: str) -> str:
    return f"{lead} without it" if value is None else f"{lead} with {quoted(value)}"


def _live(live: Live) -> str:
    if not live.readable:
        return f"cannot be read: {live.why}"
    place = f"the environment that getenv searches (environ in {live.holder})"
    if live.value is None:
        return f"{place} does not have it"
    return f"{place} has {quoted(live.value)}"


def _effective(name: str, effective: Effective) -> str:
    if not nccl.is_nccl(name):
        return "NCCL does not read it"
    if not effective.logged:
        return f"NCCL's log says nothing: {effective.why}"
    log = f"in {effective.path}" if effective.path else "in its log"
    said = [f"NCCL took {quoted(value)}" for value in dict.fromkeys(effective.values)]
    said += [f"NCCL said: {refusal}" for refusal in effective.refusals]
    if said:
        times = len(effective.values)
        often = f", {times} times" if times > 1 else ""
        return f"{'; '.join(said)} ({log}{often})"
    made = effective.communicators
    ranks = f"{made} of two or more ranks" if made else "none of two or more ranks"
    return f"NCCL does not name it {log}; communicators made: {ranks}"
