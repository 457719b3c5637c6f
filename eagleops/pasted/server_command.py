"""Which engine a command starts, and with what flags."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import attrs

from eagleops.engines.vllm import REPEATED
from eagleops.knowledge.flags import shipped
from eagleops.pasted.surroundings import Report

_PYTHON = re.compile(r"(?:.*/)?python[\d.]*\Z")
_MODULES = {
    "sglang.launch_server": "sglang",
    "sglang.srt.server": "sglang",
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.cli.main": "vllm",
    "vllm.entrypoints.api_server": "vllm",
}
_MODELS = {"sglang": ("model-path", "model"), "vllm": ("model",)}
_NEGATIVE = re.compile(r"-\d+\Z|-\d*\.\d+\Z")
_TALK = {"echo", "printf"}
PORTS = {"sglang": 30000, "vllm": 8000}
_TITLES = {"sglang": "SGLang", "vllm": "vLLM"}


@attrs.frozen(kw_only=True)
class ServerCommand:
    """A command that starts an engine.

    Attributes:
        python: The interpreter; empty where a script of the environment starts it.
        flags: The words behind the module or the script.
        respelled: How the command differs from the one that eagleops makes; empty for not.
    """

    engine: str
    python: str = ""
    flags: tuple[str, ...] = ()
    respelled: str = ""


def recognised(argv: Sequence[str]) -> ServerCommand | None:
    """The engine that ``argv`` starts; None for anything else."""
    argv = list(argv)
    name = argv[0].rpartition("/")[2]
    folder = argv[0].rpartition("/")[0]
    if _PYTHON.match(argv[0]):
        return _by_python(argv)
    if name in {"sglang", "vllm"} and argv[1:2] == ["serve"]:
        python = f"{folder}/python3" if folder else ""
        module = "sglang.launch_server" if name == "sglang" else "vllm.entrypoints.cli.main serve"
        told = f"`{name} serve` becomes `python -m {module}`, which is what it runs"
        return ServerCommand(engine=name, python=python, flags=tuple(argv[2:]), respelled=told)
    return None


def _by_python(argv: list[str]) -> ServerCommand | None:
    n = 1
    while n < len(argv) and argv[n].startswith("-") and argv[n] not in {"-m", "-c"}:
        n += 1
    dropped = f"the interpreter's options {' '.join(argv[1:n])} are left out" if n > 1 else ""
    if argv[n : n + 1] == ["-m"] and n + 1 < len(argv):
        module, rest = argv[n + 1], tuple(argv[n + 2 :])
    elif n < len(argv) and re.search(r"sglang/launch_server\.py\Z", argv[n]):
        module, rest = "sglang.launch_server", tuple(argv[n + 1 :])
        dropped = dropped or "the module is started by its name, not by its file"
    else:
        return None
    engine = _MODULES.get(module)
    if engine is None:
        return None
    if module == "vllm.entrypoints.cli.main":
        if rest[:1] != ("serve",):
            return None
        rest = rest[1:]
    elif module != "sglang.launch_server":
        dropped = f"`-m {module}` becomes what today's {engine} is started by"
    return ServerCommand(engine=engine, python=argv[0], flags=rest, respelled=dropped)


@attrs.define
class Flags:
    """The flags of a command as a profile has them.

    Attributes:
        args: Names without dashes, values as texts, True, or tuples.
        positional: Words that no flag takes.
        joined: Whether a value was joined to its flag by =.
    """

    args: dict[str, Any] = attrs.field(factory=dict)
    positional: list[str] = attrs.field(factory=list)
    joined: bool = False


def flags_of(engine: str, words: Sequence[str], report: Report) -> Flags:
    """Reads an engine's flags as its parser would."""
    table, flags = shipped(engine), Flags()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not _is_flag(word):
            if word in _TALK:
                _tell_talk(report, word, rest)
                return flags
            flags.positional.append(word)
            continue
        name, equals, value = word.partition("=")
        key = name.removeprefix("--") if name.startswith("--") else name
        known = table.find(name) if table else None
        values: list[str] = [value] if equals else []
        flags.joined = flags.joined or bool(equals)
        most = {"none": 0, "pair": 0, "one": 1, "optional": 1}.get(known.takes if known else "any")
        while (
            not equals and rest and not _is_flag(rest[0]) and (most is None or len(values) < most)
        ):
            if rest[0] in _TALK and most is None:
                break
            values.append(rest.pop(0))
        _put(flags, engine, key, _value(values, bare=not equals and not values), report)
    return flags


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not _NEGATIVE.match(word)


def _value(values: list[str], *, bare: bool) -> Any:
    if bare:
        return True
    if len(values) > 1:
        return tuple(values)
    return as_json(values[0]) if values[0].startswith("{") else values[0]


def as_json(text: str) -> Any:
    """A mapping, where it is one that is written back as the same text; else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value if isinstance(value, dict) and (compact == text or not _plain(value)) else text


def _plain(value: Any) -> bool:
    # Blanks in JSON mean nothing to whoever reads it: written without them it stays the same.
    return False if isinstance(value, dict) else bool(value)


def _put(flags: Flags, engine: str, key: str, value: Any, report: Report) -> None:
    if key in flags.args:
        if engine == "vllm" and key in REPEATED:
            before = flags.args[key]
            flags.args[key] = (*(before if isinstance(before, tuple) else (before,)), value)
            return
        same = flags.args.pop(key) == value
        report.tell(
            "flag-repeated",
            f"--{key.lstrip('-')} is given twice" + ("" if same else ": the last one holds"),
            "Only the last one is taken over.",
            "warning" if same else "error",
        )
    flags.args[key] = value


def _tell_talk(report: Report, word: str, rest: list[str]) -> None:
    report.tell(
        "lost-and",
        f"`{word}` has lost its && : the server gets `{' '.join([word, *rest])[:60]}` as arguments",
        f"Write && before `{word}`. It has no part in the profile.",
    )


def model_of(engine: str, flags: Flags) -> str | None:
    """The model, by its flag or by its place."""
    for name in _MODELS[engine]:
        value = flags.args.get(name)
        if isinstance(value, str):
            return value
    return flags.positional[0] if engine == "vllm" and flags.positional else None
