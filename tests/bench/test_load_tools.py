"""How the engines' own benchmarks are called: argv as a list, by the server's interpreter."""

from __future__ import annotations

import itertools

import pytest

from eagleops.errors import UsageError
from eagleops.server import ServerFacts
from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from eagleops.workflows.bench_subject import Subject
from eagleops.workflows.load_tools import LoadSpec, tool_for

SPEC = LoadSpec(64, 256, 512, 128)
PYTHON = "/opt/env/bin/python3"


def subject(engine: str) -> Subject:
    """A server on port 8000."""
    facts = ServerFacts("base", "ready", engine=engine, model="/shared/model", port=8000)
    return Subject(facts, 8000, frozenset(), {}, (PYTHON,))


def pairs(arguments: tuple[str, ...]) -> dict[str, str]:
    """Each flag with the word after it."""
    return {a: b for a, b in itertools.pairwise(arguments) if a.startswith("--")}


def test_sglang_s_by_its_newer_name_and_then_by_its_older() -> None:
    """The interpreter is the server's; the load and the file are told."""
    tool = tool_for("sglang", SPEC)

    assert tool.programs((PYTHON, "-m", "sglang.launch_server"), "python3") == (
        (PYTHON, "-m", "sglang.benchmark.serving"),
        (PYTHON, "-m", "sglang.bench_serving"),
    )
    given = pairs(tool.arguments(SPEC, subject("sglang"), "/state/load.json"))
    assert (given["--max-concurrency"], given["--num-prompts"]) == ("64", "256")
    assert (given["--random-input-len"], given["--random-output-len"]) == ("512", "128")
    assert (given["--port"], given["--output-file"]) == ("8000", "/state/load.json")


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("/opt/python3: No module named sglang.benchmark", True),
        ("(ModuleNotFoundError: No module named 'sglang.benchmark')", True),
        ("/opt/python3: No module named sglang.benchmark.serving", True),
        ("ModuleNotFoundError: No module named 'aiohttp'", False),
        ("ValueError: 3 requests failed", False),
    ],
)
def test_a_module_that_is_not_there(said: str, missing: bool) -> None:
    """An older SGLang lacks the newer name; any other complaint is the benchmark's own."""
    tool = tool_for("sglang", SPEC)

    assert tool.is_missing((PYTHON, "-m", "sglang.benchmark.serving"), said) is missing


def test_vllm_s_by_the_program_beside_the_server() -> None:
    """``vllm bench serve`` of the same environment; its result goes to the file that is read."""
    tool = tool_for("vllm", SPEC)

    ways = tool.programs(("/opt/env/bin/vllm", "serve", "/shared/model"), "python3")
    given = pairs(tool.arguments(SPEC, subject("vllm"), "/state/load.json"))
    assert ways[0] == ("/opt/env/bin/vllm", "bench", "serve")
    assert ways[1][0] == "/opt/env/bin/python3"
    assert (given["--result-dir"], given["--result-filename"]) == ("/state", "load.json")
    assert given["--model"] == "/shared/model"


def test_aiperf_only_where_it_is_asked_for() -> None:
    """It is looked for beside the server's interpreter, then on the PATH."""
    asked = LoadSpec(8, 32, tool="aiperf")
    tool = tool_for("command", asked)

    ways = tool.programs((PYTHON,), "python3")
    assert ways == (("/opt/env/bin/aiperf", "profile"), ("aiperf", "profile"))
    assert tool.output_file("/state/x").endswith(".json")
    with pytest.raises(UsageError, match="`command` has no benchmark of its own"):
        tool_for("command", SPEC)


def test_a_command_s_lines_come_while_it_runs() -> None:
    """``execute`` tells both streams line by line, a progress bar's among them."""
    session = Session.open(LocalTransport())
    argv = ["sh", "-c", r"printf '1%%\r2%%\r'; printf 'err\n' >&2; printf 'done\n'"]
    lines: list[str] = []

    result = session.call(
        "execute",
        argv=argv,
        tell=True,
        on_event=lambda event: lines.extend(event.get("lines", ())),
    )

    session.close()
    assert result["exit_status"] == 0
    assert sorted(lines) == ["1%", "2%", "done", "err"]
