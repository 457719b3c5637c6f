"""False verdicts over the whole matrix of programs, changes and titles: none."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops.environment import judge
from eagleops.environment.values import same_number
from eagleops.knowledge.numbers import nccl_number
from environment.programs import (
    BLIND,
    LINKED,
    STRIPPED,
    Told,
    c_worker,
    python_name,
    python_worker,
    pythons,
    stripped,
    without_sections,
)

# What is expected, by what happens to the variable. None: it must not be set.
EXPECTED = {
    "T_KEPT": "kept",
    "T_WRONG": "right",
    "T_EMPTY": "",
    "T_CHANGED": "new",
    "T_STALE": "old",
    "T_ADDED": "here",
    "T_GONE": "gone",
    "T_NEVER": "never",
    "T_ABSENT": None,
    "T_PRESENT": None,
    "NCCL_ALGO": "Ring",
    "NCCL_NTHREADS": "0x200",
    "NCCL_PROTO": "LL",
    "NCCL_BUFFSIZE": "4194304",
}
GIVEN = {
    "T_KEPT": "kept",
    "T_WRONG": "left",
    "T_EMPTY": "",
    "T_CHANGED": "old",
    "T_STALE": "old",
    "T_GONE": "gone",
    "T_PRESENT": "there",
    "NCCL_ALGO": "Ring",
    "NCCL_NTHREADS": "512",
    "NCCL_PROTO": "LL128",
}
CHANGES = {"T_CHANGED": "new", "T_STALE": "new", "T_ADDED": "here"}
NAMES = list(EXPECTED)

Case = Callable[[], contextlib.AbstractContextManager[list[Told]]]


@attrs.frozen
class Row:
    """One way to run a program."""

    name: str
    start: Case
    blind: bool = False


def truth(name: str, found: str | None) -> str:
    """The verdict that getenv's own word asks for."""
    wanted = EXPECTED[name]
    if wanted is None or found is None:
        return "ok" if wanted == found else "missing" if found is None else "wrong"
    if name.startswith("NCCL_") and wanted.startswith("0x"):
        return "ok" if int(wanted, 16) == int(found) else "wrong"
    return "ok" if wanted == found else "wrong"


def c_rows(build: Callable[..., Path]) -> Iterator[Row]:
    """worker.c in every linkage, whole, stripped and without sections, changed by two ways."""
    programs = {linked: build("worker.c", linked) for linked in LINKED}
    for linked in STRIPPED:
        programs[f"{linked}, stripped"] = stripped(programs[linked])
        programs[f"{linked}, no sections"] = without_sections(programs[linked])
    blind = {f"{linked}, stripped": stripped(programs[linked]) for linked in BLIND}
    for (name, program), how in itertools.product({**programs, **blind}.items(), ["set", "put"]):
        steps = ["unset", "T_GONE"]
        for variable, value in CHANGES.items():
            steps += ["put", f"{variable}={value}"] if how == "put" else ["set", variable, value]

        def start(program: Path = program, steps: list[str] = steps) -> Any:
            return _alone(c_worker(program, steps, GIVEN, NAMES))

        yield Row(f"C, {name}, {how}", start, blind=name in blind)


def python_rows(library: str) -> Iterator[Row]:
    """worker.py under every interpreter, started each way, changed each way, under titles."""
    changes = itertools.cycle(["environ", "putenv", "setenv"])
    first = itertools.cycle([True, False])
    starts = ["", "spawn", "fork", "forkserver"]
    for python, start in itertools.product(pythons(), starts):
        own = python == Path(sys.executable)
        titles: list[list[Any]] = [[], ["overwrite", "z", "sglang::scheduler_TP0"]]
        titles.append(["overwrite", "f", "a long title ", 40])
        if own:
            titles.append(["title", "VLLM::Worker_TP0"])
            titles += [["overwrite", manner, "a long title ", 400] for manner in "sb"]
        for title in titles:
            change = next(changes)
            steps = [[change, name, value] for name, value in CHANGES.items()]
            steps.append(["unsetenv", "T_GONE"])
            steps = [title, *steps] if title and next(first) else [*steps, *([title] * bool(title))]
            plan = {"start": start, "steps": steps, "names": NAMES, "library": library}

            def run(python: Path = python, plan: Mapping[str, Any] = plan) -> Any:
                return python_worker(python, plan, {**os.environ, **GIVEN})

            about = [python_name(python), start or "alone", change, *map(str, title[:2])]
            yield Row(", ".join(["Python", *about]), run)


@contextlib.contextmanager
def _alone(worker: contextlib.AbstractContextManager[Told]) -> Iterator[list[Told]]:
    with worker as told:
        yield [told]


@pytest.mark.parametrize("noenv", [False, True], ids=["", "SPT_NOENV"])
def test_no_verdict_is_false_over_the_whole_matrix(
    build, library, read, noenv, monkeypatch
) -> None:
    """Each verdict agrees with getenv in the process; where nobody can see it is unknown."""
    if noenv:
        monkeypatch.setenv("SPT_NOENV", "1")
        rows = [row for row in python_rows(library) if ", title" in row.name]
    else:
        rows = [*c_rows(build), *python_rows(library)]
    kinds: Counter[str] = Counter()
    false: list[str] = []
    processes = 0
    for row in rows:
        with row.start() as told:
            report = judge(read(told[0].pid, *NAMES), EXPECTED)
        seen = {process.pid: process for process in report.processes}
        for one in told:
            processes += 1
            for name, found in one.found.items():
                verdict = seen[one.pid].variables[name].verdict
                kinds[verdict.kind] += 1
                wanted = "unknown" if row.blind else truth(name, found)
                if verdict.kind != wanted:
                    false.append(f"{row.name}: {name}={found!r} is {verdict.kind}, not {wanted}")

    print(
        f"\n{sum(kinds.values())} verdicts on {processes} processes in {len(rows)} rows: "
        f"{len(false)} false; {dict(kinds)}"
    )
    assert false == []
    assert kinds["ok"] > 0


# What is expected of NCCL's variables, what the process is started with, and what it does to
# them before and after the communicators are made.
NCCL_EXPECTED = {
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "LL",
    "NCCL_NTHREADS": "500",
    "NCCL_BUFFSIZE": "4M",
    "NCCL_MAX_NCHANNELS": "16",
    "NCCL_MIN_NCHANNELS": "4",
    "NCCL_LL_BUFFSIZE": "0x100",
    "NCCL_LL128_BUFFSIZE": "010",
}
STARTS = {
    "as asked": dict(NCCL_EXPECTED),
    "otherwise": {
        "NCCL_ALGO": "Tree",
        "NCCL_PROTO": "LL128",
        "NCCL_NTHREADS": "512",
        "NCCL_BUFFSIZE": "4194304",
        "NCCL_MAX_NCHANNELS": "8",
        "NCCL_MIN_NCHANNELS": "40",
        "NCCL_LL_BUFFSIZE": "100",
        "NCCL_LL128_BUFFSIZE": "10",
    },
    "with nothing": {},
    "with nonsense": {"NCCL_ALGO": "Foo", "NCCL_PROTO": "Bar"},
}
DEEDS = {
    "leaves them": [],
    "sets them": [["environ", name, value] for name, value in NCCL_EXPECTED.items()],
    "changes them": [["environ", name, "32"] for name in NCCL_EXPECTED],
    "removes them": [["unsetenv", name] for name in NCCL_EXPECTED],
}
COMMUNICATORS = {"none": [], "of one rank": [1], "of two": [2], "twice": [2, 2]}


def nccl_truth(name: str, told: Told) -> str:
    """The verdict that NCCL's own taking asks for; getenv's where NCCL has read nothing."""
    expected = NCCL_EXPECTED[name]
    if name in told.took:
        taken = set(told.took[name])
        if taken == {None}:
            return "missing" if told.found[name] is None else "wrong"
        words = name in {"NCCL_ALGO", "NCCL_PROTO"}
        return "ok" if taken == {expected if words else str(nccl_number(expected))} else "wrong"
    found = told.found[name]
    if found is None:
        return "missing"
    refused = name == "NCCL_NTHREADS"  # no multiple of 32: NCCL will not take it
    same = found == expected or same_number(expected, found)
    return "ok" if same and not refused else "wrong"


Plan = tuple[str, dict[str, Any], dict[str, str], bool]


def nccl_plans(library: str, nccl: str) -> Iterator[Plan]:
    """Every start, deed before, communicators and deed after, with NCCL's log and without."""
    titles = itertools.cycle([[], [["overwrite", "z", "sglang::scheduler_TP0"]]])
    deeds = [(name, "leaves them") for name in DEEDS] + [("leaves them", name) for name in DEEDS]
    for start, (before, after), comms, log in itertools.product(
        STARTS, deeds, COMMUNICATORS, [True, False]
    ):
        inits = [["nccl", ranks] for ranks in COMMUNICATORS[comms]]
        late = comms == "twice"  # the deed then falls between the two
        steps = [["load", nccl], *next(titles), *DEEDS[before], *(inits[:1] if late else inits)]
        steps += [*DEEDS[after], *(inits[1:] if late else [])]
        plan = {"steps": steps, "names": list(NCCL_EXPECTED), "library": library}
        about = f"started {start}, {before}, {comms}, {after}, log {log}"
        made = max(COMMUNICATORS[comms], default=0) > 1 and start != "with nonsense"
        proof = log and made
        yield about, plan, {**STARTS[start], **({"NCCL_DEBUG": "INFO"} if log else {})}, proof


def test_no_verdict_on_what_nccl_took_is_false(build, library, read, tmp_path) -> None:
    """With NCCL's log each verdict is what NCCL took; without, never more than can be known.

    NCCL is worker.py's model of it: real logs are judged in test_facts.py, and on real GPUs.
    """
    nccl = build("overwrite.c", "pie", "-shared", "-fPIC").with_name("libnccl.so.2")
    shutil.copy(library, nccl)
    kinds: Counter[str] = Counter()
    false: list[str] = []
    rows = list(nccl_plans(library, str(nccl)))
    for about, plan, given, proof in rows:
        given["NCCL_DEBUG_FILE"] = f"{tmp_path}/nccl.%p.log"
        with python_worker(Path(sys.executable), plan, given) as (told,):
            report = judge(read(told.pid, *NCCL_EXPECTED), NCCL_EXPECTED)
        for name in NCCL_EXPECTED:
            verdict = report.processes[0].variables[name].verdict
            kinds[verdict.kind] += 1
            wanted = nccl_truth(name, told)
            if verdict.kind != wanted and (proof or verdict.kind != "unknown"):
                false.append(f"{about}: {name} is {verdict.kind} ({verdict.why}), not {wanted}")

    print(
        f"\n{sum(kinds.values())} verdicts in {len(rows)} rows: {len(false)} false; {dict(kinds)}"
    )
    assert false == []
