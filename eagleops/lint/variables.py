"""Rules on variables as such: inherited, proved, and known to their engine."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from eagleops.knowledge.variables import sglang_variables
from eagleops.lint.finding import Severity
from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject


@rule("inherit-set", "note")
def inherited(subject: Subject) -> Iterator[Told]:
    """A variable is either inherited from the machine or set."""
    for name in subject.profile.inherit:
        if name in subject.profile.env:
            message = f"{name} is inherited and set: the profile's value holds"
            yield subject.env_place(name), message, "Take it out of inherit."


@rule("witness", "warning")
def witness(subject: Subject) -> Iterator[Told]:
    """The environment of the workers can be proved once they run."""
    env = subject.profile.env
    if env.get("SPT_NOENV", "1") in {"", "0"} or "SPT_NOENV" in subject.profile.unset:
        message = "without SPT_NOENV=1 the workers' titles overwrite /proc/PID/environ: verify-env "
        where = subject.env_place("SPT_NOENV") if "SPT_NOENV" in env else subject.profile.place()
        yield where, message + "has one witness less", "Leave it to eagleops."


@rule("legacy-variable", "warning", "sglang")
def legacy(subject: Subject) -> Iterator[Told]:
    """No SGL_ variable overwrites its SGLANG_ one."""
    for name in subject.profile.env:
        if not name.startswith("SGL_"):
            continue
        newer = f"SGLANG_{name.removeprefix('SGL_')}"
        message = f"SGLang copies {name} over {newer}"
        message += ", which is set too: it is lost" if newer in subject.profile.env else ""
        yield subject.env_place(name), message, f"Write {newer}."


@rule("engine-variable", "error", "sglang")
def known(subject: Subject) -> Iterator[Told]:
    """A name that begins with SGLANG_ is one that SGLang reads: it says nothing of others."""
    table = sglang_variables()
    span = f"SGLang {table.versions[0]} to {table.versions[-1]}"
    for name in subject.profile.env:
        if not name.startswith("SGLANG_"):
            continue
        where = subject.env_place(name)
        if name not in table.names:
            near = difflib.get_close_matches(name, table.names, n=1, cutoff=0.9)
            severity: Severity = "error" if near else "warning"
            hint = f"Did you mean {near[0]}?" if near else ""
            yield where, f"{span} names no {name}: it passes over it", hint, severity
        elif gone := table.gone_since(name):
            yield where, f"SGLang names {name} no more, from {gone} at the latest", "", "note"
