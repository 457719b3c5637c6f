"""The verdict on Xid errors: which are the machine's faults, and which a program's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from eagleops.knowledge.xid import XidMeaning, meaning
from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule
from eagleops.phrases import minute
from eagleops.workflows.nightly.gpu_look import Gpus, untold

Told = Mapping[str, Any]
# A finding names so many; the facts hold some more.
NAMED = 4
KEPT = 50


def xids(host: str, told: Told, gpus: Gpus, rule: Rule) -> Finding:
    """The Xid errors since the last night.

    One that a program can cause by itself is a warning whatever the rule says; what another
    event leaves behind is told, and is no fault.
    """
    log = told["kernel_log"]
    known = [(one, meaning(one["xid"], one["text"])) for one in told["xids"]]
    faults = [pair for pair in known if pair[1].kind == "fault"]
    programs = [pair for pair in known if pair[1].kind == "program"]
    traces = [pair for pair in known if pair[1].kind == "trace"]
    if log["source"] == "none":
        why = f"the kernel's log cannot be read: {log['problem']}"
        return untold(host, rule, why, told_before=gpus.had_log)
    facts = {"xids": [pair[0] for pair in (*faults, *programs, *traces)][:KEPT]}
    unsaid = [f"({log['problem']})"] if log["problem"] else []
    if faults or programs:
        told_words = _words([*faults, *programs], gpus)
        words = " ".join([f"{told_words}.", _way_out([*faults, *programs]), *unsaid])
        found = rule.faulty(host, words, value=_count([*faults, *programs]), facts=facts)
        return found if faults else attrs.evolve(found, state="warn")
    if log["problem"]:
        return untold(host, rule, f"none was told, but {log['problem']}")
    since = minute(log["from_utc"]) if log["from_utc"] else "the boot"
    words = f"no Xid error since {'the last night' if gpus.before else since} ({log['source']})"
    if traces:
        words += f"; no fault by itself: {_words(traces, gpus)}"
    return rule.passed(host, words, value=0, facts=facts)


def _words(pairs: Sequence[tuple[Told, XidMeaning]], gpus: Gpus) -> str:
    sentences = [_sentence(one, known, gpus) for one, known in pairs[:NAMED]]
    if len(pairs) > NAMED:
        sentences.append(f"and {_count(pairs[NAMED:]):,} more")
    return "; ".join(sentences)


def _sentence(one: Told, known: XidMeaning, gpus: Gpus) -> str:
    times = f" {one['count']:,} times" if one["count"] > 1 else ""
    whose = f", by {one['process']}" if one["process"] else ""
    when = minute(one["time_utc"])
    return f"{_place(one, gpus)}: Xid {one['xid']}{times} ({known.name}{whose}; {when})"


def _place(one: Told, gpus: Gpus) -> str:
    for gpu in (*gpus.now, *gpus.gone):
        if same_device(gpu["bus_id"], one["bus_id"]):
            return f"GPU {gpu['index']}{' ' + one['instance'] if one['instance'] else ''}"
    return f"the GPU at {one['bus_id']}"


def same_device(one: str | None, other: str | None) -> bool:
    """Whether two PCI addresses are the same: domains have four digits or eight."""
    return one is not None and other is not None and _short(one) == _short(other)


def _short(bus_id: str) -> str:
    domain, _, rest = bus_id.partition(":")
    return f"{domain.lstrip('0') or '0'}:{rest}".lower()


def _way_out(pairs: Sequence[tuple[Told, XidMeaning]]) -> str:
    return next((known.way_out for _, known in pairs if known.way_out), "")


def _count(pairs: Sequence[tuple[Told, XidMeaning]]) -> int:
    return sum(one["count"] for one, _ in pairs)
