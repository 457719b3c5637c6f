"""The engines' own load benchmarks: how each is started, and where it writes what it measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs

from eagleops.errors import UsageError
from eagleops.workflows.bench_subject import Subject

_KEYS = ("concurrency", "requests", "input", "output", "tool")


@attrs.frozen
class LoadSpec:
    """How much load.

    Attributes:
        concurrency: Requests at once.
        requests: In all; four times as many without.
        input: Tokens of each prompt.
        output: Tokens of each reply.
        tool: ``engine``, or ``aiperf``.
    """

    concurrency: int
    requests: int
    input: int = 512
    output: int = 256
    tool: str = "engine"

    @classmethod
    def parse(cls, text: str) -> LoadSpec:
        """Reads ``concurrency=64,requests=256,input=512,output=256,tool=engine``.

        Raises:
            UsageError: for what is none of these.
        """
        given: dict[str, str] = {}
        for part in filter(None, text.replace(" ", ",").split(",")):
            key, equals, value = part.partition("=")
            if key not in _KEYS or not equals or key in given:
                raise _bad(text, f"{part!r} is none of {', '.join(f'{k}=' for k in _KEYS)}")
            given[key] = value
        tool = given.pop("tool", "engine")
        if tool not in {"engine", "aiperf"}:
            raise _bad(text, f"tool is engine or aiperf, not {tool}")
        numbers = {key: _number(text, key, value) for key, value in given.items()}
        concurrency = numbers.pop("concurrency", 1)
        return cls(concurrency, numbers.pop("requests", 4 * concurrency), tool=tool, **numbers)

    @property
    def words(self) -> str:
        """The load in words."""
        return f"{self.concurrency} at once, {self.input} tokens in and {self.output} out"


def _number(text: str, key: str, value: str) -> int:
    if not value.isdecimal() or not int(value):
        raise _bad(text, f"{key} is a whole number from 1 on, not {value!r}")
    return int(value)


def _bad(text: str, why: str) -> UsageError:
    return UsageError(
        problem=f"--load {text!r}: {why}",
        way_out="For example: --load 'concurrency=64,requests=256,input=512,output=256'.",
    )


class Tool(Protocol):
    """One benchmark."""

    way_out: str

    def programs(self, argv: Sequence[str], python: str) -> tuple[tuple[str, ...], ...]:
        """How it may be called, the newest way first.

        Args:
            argv: The server's command, whose interpreter has the engine.
            python: The machine's, where the command names none.
        """

    def arguments(self, spec: LoadSpec, subject: Subject, output: str) -> tuple[str, ...]:
        """What follows; its result goes to the file ``output``."""

    def output_file(self, output: str) -> str:
        """The file that the result is really in."""

    def is_missing(self, program: Sequence[str], said: str) -> bool:
        """Whether what it said means that this engine has no such program."""


def tool_for(engine: str, spec: LoadSpec) -> Tool:
    """The benchmark of ``engine``, or the one that was asked for.

    Raises:
        UsageError: if the engine has none.
    """
    if spec.tool == "aiperf":
        return _Aiperf()
    if engine == "sglang":
        return _Sglang()
    if engine == "vllm":
        return _Vllm()
    raise UsageError(
        problem=f"the engine `{engine}` has no benchmark of its own",
        way_out="Install aiperf on the machine and add tool=aiperf.",
    )


class _Sglang:
    """``sglang.benchmark.serving`` (0.5.23), before it ``sglang.bench_serving``."""

    way_out = "SGLang brings its own: is this the interpreter that serves?"

    def programs(self, argv: Sequence[str], python: str) -> tuple[tuple[str, ...], ...]:
        interpreter = _interpreter(argv, python)
        modules = ("sglang.benchmark.serving", "sglang.bench_serving")
        return tuple((interpreter, "-m", module) for module in modules)

    def arguments(self, spec: LoadSpec, subject: Subject, output: str) -> tuple[str, ...]:
        return (
            *("--backend", "sglang", "--host", "127.0.0.1", "--port", str(subject.port)),
            *("--dataset-name", "random", "--random-input-len", str(spec.input)),
            *("--random-output-len", str(spec.output), "--random-range-ratio", "1"),
            *("--num-prompts", str(spec.requests), "--max-concurrency", str(spec.concurrency)),
            *("--seed", "1", "--output-file", output),
        )

    def output_file(self, output: str) -> str:
        return output

    def is_missing(self, program: Sequence[str], said: str) -> bool:
        return _no_module(program, said)


class _Vllm:
    """``vllm bench serve``."""

    way_out = "It comes with vLLM: pip install 'vllm[bench]'."

    def programs(self, argv: Sequence[str], python: str) -> tuple[tuple[str, ...], ...]:
        beside = _interpreter(argv, python)
        program = argv[0] if argv and argv[0].rpartition("/")[2] == "vllm" else ""
        ways: list[tuple[str, ...]] = [(program,)] if program else []
        ways.append((beside, "-m", "vllm.entrypoints.cli.main"))
        return tuple((*way, "bench", "serve") for way in ways)

    def arguments(self, spec: LoadSpec, subject: Subject, output: str) -> tuple[str, ...]:
        folder, _, name = output.rpartition("/")
        return (
            *("--backend", "openai", "--host", "127.0.0.1", "--port", str(subject.port)),
            *("--model", str(subject.server.model), "--endpoint", "/v1/completions"),
            *("--dataset-name", "random", "--random-input-len", str(spec.input)),
            *("--random-output-len", str(spec.output), "--ignore-eos", "--seed", "1"),
            *("--num-prompts", str(spec.requests), "--max-concurrency", str(spec.concurrency)),
            *("--save-result", "--result-dir", folder, "--result-filename", name),
        )

    def output_file(self, output: str) -> str:
        return output

    def is_missing(self, program: Sequence[str], said: str) -> bool:
        return _no_module(program, said) or "invalid choice: 'bench'" in said


class _Aiperf:
    """``aiperf profile``."""

    way_out = "Install it there: pip install aiperf."

    def programs(self, argv: Sequence[str], python: str) -> tuple[tuple[str, ...], ...]:
        folder, slash, _ = _interpreter(argv, python).rpartition("/")
        beside = ((f"{folder}/aiperf",),) if slash else ()
        return tuple((*way, "profile") for way in (*beside, ("aiperf",)))

    def arguments(self, spec: LoadSpec, subject: Subject, output: str) -> tuple[str, ...]:
        return (
            *("--model", str(subject.server.model), "--endpoint-type", "completions"),
            *("--url", f"http://127.0.0.1:{subject.port}", "--streaming"),
            *("--concurrency", str(spec.concurrency), "--request-count", str(spec.requests)),
            *("--synthetic-input-tokens-mean", str(spec.input)),
            *("--output-tokens-mean", str(spec.output), "--extra-inputs", "ignore_eos:true"),
            *("--random-seed", "1", "--ui", "simple", "--artifact-dir", f"{output}.d"),
        )

    def output_file(self, output: str) -> str:
        return f"{output}.d/profile_export_aiperf.json"

    def is_missing(self, program: Sequence[str], said: str) -> bool:
        del program, said
        return False


def _interpreter(argv: Sequence[str], python: str) -> str:
    """The server's own, whose packages are the engine's."""
    first = argv[0] if argv else ""
    folder, slash, name = first.rpartition("/")
    if name.startswith("python"):
        return first
    return f"{folder}/python3" if slash else python


def _no_module(program: Sequence[str], said: str) -> bool:
    last = next((word for word in reversed(program) if "." in word), "")
    parent = last.rpartition(".")[0]
    return any(
        f"No module named {quote}{name}{quote}" in said
        for name in (last, parent)
        for quote in ("'", "")
    )
