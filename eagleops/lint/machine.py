"""Rules on the machine: what only it can tell (``eagleops lint --host H``)."""

from __future__ import annotations

from collections.abc import Iterator

from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject


@rule("path-absent", "error")
def absent(subject: Subject) -> Iterator[Told]:
    """The model, the draft and the interpreter are there (asked with --host)."""
    for key, value in subject.texts:
        if value in subject.facts.absent:
            message = f"{subject.facts.where} has no {value}"
            yield subject.profile.place(key), message, ""


@rule("engine-absent", "error", "sglang", "vllm")
def engine_absent(subject: Subject) -> Iterator[Told]:
    """The engine is installed for the interpreter that the profile names (asked with --host)."""
    facts = subject.facts
    if facts.where and facts.engine_version == "":
        engine = subject.profile.engine
        message = f"{engine} is not installed for the interpreter that would start it"
        fix = (
            f"Name the one that it is installed for: `python: /path/to/env/bin/python3` ({engine})."
        )
        yield facts.where, message, fix
