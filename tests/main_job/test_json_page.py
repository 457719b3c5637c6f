"""Every key of every ``--json`` document is described, and every key described is in one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from eagleops import errors
from eagleops.workflows.load import LoadResult
from eagleops.workflows.load_tools import LoadSpec
from main_job.conftest import Commands
from parts.shared import shipped_port

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/json.md"
# Other tests hold what these look like.
ELSEWHERE = re.compile("nightly|trend|timer")
EVERYWHERE = {"schema", "command", "ok", "host", "error"}
# Objects whose keys are data: names of variables, of flags, of groups, GPUs, parts.
DATA = {"args", "counts", "data", "env", "expected", "figures", "gpu_mib", "groups", "parts"}
DATA |= {"sim", "sources", "unchanged", "values", "variables", "vary"}
# What begins a line of a table beside keys.
NOT_KEYS = {"--dry-run", "NAME"}
# Of these the values are described too.
LOOKED_INTO = {"variables"}
SPECULATION = {
    "speculative-algorithm": "EAGLE3",
    "speculative-draft-model-path": "/shared/drafter",
    "speculative-num-steps": 2,
    "speculative-eagle-topk": 1,
    "speculative-num-draft-tokens": 3,
}
SHORT = ("--runs", "1", "--tokens", "32", "--warmups", "0")
BRIEF = ("--restarts", "1", "--cool-down", "0", *SHORT)
VARY = ("--profile", "spec", "--vary", "args.speculative-num-steps=1,2")
PASTED = "ssh root@192.0.2.6 pct exec 129 -- python3 -m sglang.launch_server --model /m --tp 8\n"
BREAK_EVEN = ("--baseline-tps", "82", "--cycle-ms", "30", "--accept-length", "1.8")
# In this order, on one box.
SESSION: tuple[tuple[str, ...], ...] = (
    ("hosts",),
    ("doctor",),
    ("lint",),
    ("import-command", "--file", "pasted.sh"),
    ("show-profile",),
    ("launch", "--profile", "spec"),
    ("launch", "--profile", "spec"),  # a server of that name lives: an error
    ("status",),
    ("verify-env",),
    ("verify-env", "--explain", "NCCL_PROTO"),
    ("logs", "--lines", "2"),
    ("bench", *SHORT),
    ("reset-gpus", "--dry-run"),
    ("stop",),
    ("stop",),
    ("reset-gpus",),
    ("compare", "--profiles", "baseline,spec", "--dry-run"),
    ("compare", "--profiles", "baseline,spec", *BRIEF),
    ("sweep", *VARY, "--dry-run"),
    ("sweep", *VARY, *BRIEF),
    ("break-even", *BREAK_EVEN, "--num-draft-tokens", "3"),
    ("runs",),
    ("show", "--run", "1"),
    ("show", "--run", "1", "--as-profile"),
    ("diff", "--run", "1", "--against", "2"),
    ("reproduce", "--run", "1", "--dry-run"),
    ("reproduce", "--run", "1"),
    ("stop",),
)


def session(commands: Commands) -> list[dict[str, Any]]:
    """The documents of :data:`SESSION`, and the demo's."""
    args = ", ".join(f"{name}: {value}" for name, value in SPECULATION.items())
    commands.write(
        sim="{start_s: 0.2, warmup_s: 0.1}",
        more=[
            "  spec:",
            "    extends: baseline",
            f"    args: {{{args}}}",
            "    sim: {cycle_ms: 30.6, accept_length: 1.84}",
            "containers: {inside: {on: sim, vmid: 129}}",
            "groups: {boxes: [sim, inside]}",
        ],
    )
    (commands.folder / "pasted.sh").write_text(PASTED)
    told = [commands(*words, "--json").document for words in SESSION]
    with shipped_port():
        return [*told, commands("demo", "--json").document]


@pytest.fixture
def sections() -> dict[str, str]:
    """The page's sections, by each name in their headings; with what they refer to."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    own = {
        name.strip(): text
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
        for name in heading.split(",")
    }
    return {name: "".join(own[one] for one in reached(own, name)) for name in own}


def reached(own: dict[str, str], name: str) -> list[str]:
    """The section and those that it refers to: ``as `launch```, ``[a GPU](#a-gpu)``."""
    found, waiting = [], [name]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        found.append(one)
        linked = {anchor.replace("-", " ") for anchor in re.findall(r"\(#([a-z-]+)\)", own[one])}
        waiting += [other for other in own if other.lower() in linked or f"`{other}`" in own[one]]
    return found


def keys(value: Any, *, data: bool = False) -> Iterator[str]:
    """The keys of a document, at any depth, that are no data."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not data:
                yield key
            if key not in DATA or not isinstance(inner, dict):
                yield from keys(inner)
            elif key in LOOKED_INTO:
                yield from keys(inner, data=True)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, data=data)


def named(text: str) -> set[str]:
    """The keys that a section names: ``gpus[]``, ``processes[].variables.NAME``."""
    spans = re.findall(r"`([^`\n]+)`", text)
    return {word for span in spans for word in re.split(r"[.\[\]]+", span) if word}


def first_column(text: str) -> set[str]:
    """The keys that begin a line of a section's tables."""
    return named("\n".join(re.findall(r"^\| (`.+?) \|", text, flags=re.MULTILINE)))


def test_the_page_describes_what_there_is(commands, sections) -> None:
    """Each key of each document in its command's section, and no key that is gone."""
    documents = session(commands)
    # No key of a result hides one that every document has.
    assert [document["command"] for document in documents] == [
        *(words[0] for words in SESSION),
        "demo",
    ]
    loaded = LoadResult("box", "a", "a", "sglang", "", "t", ("t",), LoadSpec(1, 4), {})
    documents.append({"command": "bench", **loaded.to_dict()})

    found = {
        (document["command"], key)
        for document in documents
        for key in keys({**document, "error": None})
    }
    described = {
        (name, key)
        for name, text in sections.items()
        if name != "An error" and not ELSEWHERE.search(name)
        for key in first_column(text)
    }

    assert {
        (command, key) for command, key in found if key not in EVERYWHERE | named(sections[command])
    } == set()
    there = {key for _, key in found} | DATA | NOT_KEYS
    assert {(name, key) for name, key in described if key not in there} == set()


def facts(kind: type[errors.EagleError]) -> dict[str, set[str]]:
    """Each error by its name, with the facts that it alone has."""
    every = {field.name for field in attrs.fields(errors.EagleError)}
    own = {field.name for field in attrs.fields(kind)} - every
    told = {kind.__name__: own}
    for child in kind.__subclasses__():
        told |= facts(child)
    return told


def test_every_error_is_described(sections) -> None:
    """Each class with its exit status and its own facts, and none that is gone."""
    rows = re.findall(r"^\| (`[A-Z].+?) \| ([0-9]+) \|(.*)\|$", sections["An error"], re.MULTILINE)
    described = {
        name: (int(status), named(words)) for names, status, words in rows for name in named(names)
    }

    assert set(described) == set(facts(errors.EagleError))
    for name, own in facts(errors.EagleError).items():
        status, words = described[name]
        assert status == getattr(errors, name).exit_status, name
        assert own <= words, name
