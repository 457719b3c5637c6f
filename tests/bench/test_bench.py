"""A bench from the request to the ledger: by every way in, and when something is off."""

from __future__ import annotations

import threading
from pathlib import Path

import attrs
import pytest

from bench.conftest import EAGLE3, Serve
from eagleops.errors import CheckFailed, LedgerError, OperationFailed, RequestFailed, UsageError
from eagleops.ledger import Ledger
from eagleops.measuring import prompts
from eagleops.workflows.bench import Settings, bench
from eagleops.workflows.bench_record import bench_and_record, load_and_record
from eagleops.workflows.load import load
from eagleops.workflows.load_tools import LoadSpec
from eagleops.workflows.progress import Step
from eagleops.workflows.record import launch_and_record


@pytest.mark.alone  # a reply that a busy machine held back is noted as such
@pytest.mark.parametrize("way", ["local", "ssh", "pct"])
def test_the_same_figures_by_every_way_in(served: Serve, way: str) -> None:
    """Counts do not depend on the way; the way and its round trip are told beside them."""
    server = served(way, args=EAGLE3, cycle_ms=15.0, accept_length=2.0)

    result = server.bench(runs=2, tokens=41)

    assert [run.reply.completion_tokens for run in result.measured] == [41, 41]
    assert result.cycles.accept_length == pytest.approx(2.0, rel=0.06)
    assert result.conditions.prompt_tokens == len(prompts.prompt("prose").text.split()) + 1
    assert result.conditions.route.round_trip_ms > 0
    print([(run.reply.events, run.reply.moments) for run in result.measured])
    assert not any(run.reply.was_held_back for run in result.measured)
    assert len(result.measured[0].gpus) == 2
    assert result.notes == ()


@pytest.mark.alone
def test_ssh_forwards_the_port(served: Serve) -> None:
    """Over SSH alone the requests take a channel of the connection, and start nothing there."""
    server = served("ssh", tok_s=400.0)
    transport = server.place.transport.inner
    before = len(server.place.transport.started)
    machine = attrs.evolve(server.machine, transport=transport)

    result = bench(machine, "baseline", Settings(runs=1, tokens=400, warmups=0), sample=False)

    reply = result.measured[0].reply
    print(f"{reply.events} events at {reply.moments} moments, {reply.tok_s:.1f} tok/s")
    assert (reply.completion_tokens, reply.events) == (400, 400)
    assert not reply.was_held_back
    assert result.conditions.route.name == f"through {transport.where}"
    assert len(server.place.transport.started) == before
    machine.close()


def test_a_throttling_gpu_is_told_in_words(served: Serve) -> None:
    """A GPU that is slowed down marks the run; the words name it, why, and for how long."""
    server = served(tok_s=40.0)
    server.box.break_gpu(1, throttle_reasons=["sw_thermal_slowdown"], pcie_width=8)

    result = server.bench(runs=2, tokens=60)

    assert result.throttled_runs == 2
    notes = [note for run in result.measured for note in (*run.throttling, *run.off)]
    assert "GPU 1 throttled (SW thermal slowdown) for 100 % of run 1" in notes
    assert "GPU 1: PCIe x8 of x16 in run 2" in notes
    assert not any(note.startswith("GPU 0") for note in notes)
    assert "2 of 2 runs throttled" in result.view().conclusion.text
    assert [one["throttled"] for one in result.to_dict()["measurements"]] == [True, True]


def test_simulated_acceptance_is_refused(served: Serve) -> None:
    """A server whose acceptance is made up is not measured: its speed is no speed."""
    server = served(args=EAGLE3, env={"SGLANG_SIMULATE_ACC_LEN": "3"}, accept_length=2.0)

    with pytest.raises(CheckFailed) as refused:
        server.bench()

    assert "SGLANG_SIMULATE_ACC_LEN=3" in refused.value.problem
    assert refused.value.exit_status == 1
    assert refused.value.way_out == "Launch it without SGLANG_SIMULATE_ACC_LEN."


def test_simulated_acceptance_that_is_off_is_no_matter(served: Serve) -> None:
    """SGLang's own default, -1, is off."""
    server = served(env={"SGLANG_SIMULATE_ACC_LEN": "-1"}, tok_s=200.0)

    assert server.bench().measured[0].reply.completion_tokens == 40


def test_a_stream_that_stalls(served: Serve) -> None:
    """Tokens that stop coming end the bench after its limit, with how many had come."""
    server = served(fail="stall", tok_s=200.0)

    with pytest.raises(RequestFailed, match=r"nothing came for 3 s after 2\d of 40 tokens"):
        server.bench(stall_s=3.0)


def test_a_server_that_dies_of_the_first_request(served: Serve) -> None:
    """A completion that kills the engine is told as such, and points to the log."""
    server = served(fail="serve")

    with pytest.raises(RequestFailed) as died:
        server.bench()

    assert "eagleops logs" in died.value.way_out


def test_a_server_that_dies_in_the_middle(served: Serve) -> None:
    """A stream that breaks off says after how many of the tokens it did."""
    server = served(tok_s=40.0)
    killed = threading.Event()

    def kill(step: Step) -> None:
        if step.event and step.event["tokens"] and not killed.is_set():
            killed.set()
            server.machine.call("stop", name="baseline", grace_s=0.0)

    with pytest.raises(RequestFailed, match=r"after \d+ of 400 tokens"):
        server.bench(tokens=400, progress=kill)


def test_an_engine_that_answers_500(served: Serve) -> None:
    """HTTP 500 and its words, where the core of vLLM has died."""
    server = served(engine="vllm", fail="serve")

    with pytest.raises(RequestFailed) as refused:
        server.bench()

    assert refused.value.status == 500
    assert "EngineCore" in refused.value.problem


def test_no_such_server_and_one_that_has_ended(served: Serve) -> None:
    """What is not there, or not ready, is refused before anything is asked of it."""
    server = served(tok_s=200.0)

    with pytest.raises(OperationFailed) as unknown:
        bench(server.machine, "other")
    assert unknown.value.kind == "no_such_server"
    server.machine.call("stop", name="baseline", grace_s=0.0)
    with pytest.raises(CheckFailed):
        server.bench()


def test_a_machine_whose_gpus_cannot_be_read_is_measured_all_the_same(served: Serve) -> None:
    """Telemetry that fails costs no measurement, and is told."""
    server = served(tok_s=200.0)
    machine = attrs.evolve(server.machine, options={**server.machine.options, "path": "/nowhere"})

    result = bench(machine, "baseline", Settings(runs=1, tokens=40, warmups=0))

    assert result.measured[0].gpus == ()
    assert any("no nvidia-smi on PATH" in note for note in result.notes)
    machine.close()


def test_figures_are_recorded_with_the_run_of_the_launch(served: Serve, tmp_path: Path) -> None:
    """The launch's run gets figures, samples and telemetry; a second bench is its later fact."""
    server = served(tok_s=200.0)
    server.machine.call("stop", name="baseline", grace_s=0.0)
    path = tmp_path / "ledger.db"
    launched = launch_and_record(path, server.machine, server.place.profile, verify_after=False)

    settings = Settings(runs=2, tokens=40, warmups=0)
    first = bench_and_record(path, server.machine, "baseline", settings)
    second = bench_and_record(path, server.machine, "baseline", settings)

    assert launched.run_id == first.run_id == second.run_id
    assert first.view().conclusion.text.endswith(f"recorded as run {launched.run_id}")
    with Ledger.open(path) as ledger:
        run = ledger.run(first.run_id)
    assert (run.header.outcome, run.header.tok_s) == ("benched", second.tok_s.median)
    assert [one["number"] for one in run.part("samples")] == [1, 2]
    assert {gpu["index"] for gpu in run.part("telemetry")["gpus"]} == {0, 1}
    assert run.part("bench")["conditions"]["tokens"] == 40
    assert len([fact for fact in run.facts if fact.part == "bench"]) == 2


def test_a_server_whose_launch_is_not_recorded_gets_a_run(served: Serve, tmp_path: Path) -> None:
    """What runs is looked at now; a second bench of it finds that run."""
    server = served(tok_s=200.0)
    path = tmp_path / "ledger.db"
    settings = Settings(runs=1, tokens=40, warmups=0)

    ids = [bench_and_record(path, server.machine, "baseline", settings).run_id for _ in range(2)]

    assert ids == [1, 1]
    with Ledger.open(path) as ledger:
        run = ledger.run(1)
    assert (run.header.profile, run.header.outcome) == ("baseline", "benched")
    assert run.part("spec")["argv"][1:3] == ["-m", "sglang.launch_server"]


def test_a_ledger_that_cannot_be_written_costs_no_figure(
    served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures are given all the same, with a notice."""
    server = served(tok_s=200.0)

    def full(*_: object, **__: object) -> None:
        raise LedgerError(problem="the disk is full")

    monkeypatch.setattr(Ledger, "open", full)
    result = bench_and_record(
        tmp_path / "l.db", server.machine, "baseline", Settings(1, 40, 0), sample=False
    )

    assert (result.run_id, result.notice) == (None, "This bench is not recorded: the disk is full")


def test_load_is_the_engine_s_own_benchmark(served: Serve, tmp_path: Path) -> None:
    """Its module runs over there beside the server; its progress comes, its JSON is recorded."""
    server = served(tok_s=200.0)
    lines: list[str] = []

    def watch(step: Step) -> None:
        lines.extend(step.event.get("lines", ()))

    spec = LoadSpec.parse("concurrency=4,requests=8,input=16,output=20")
    result = load_and_record(tmp_path / "l.db", server.machine, "baseline", spec, progress=watch)

    assert (result.tool, result.completed, result.ok) == ("sglang.bench_serving", 8, True)
    assert result.figures["total_output_tokens"] == 160
    assert any("8/8" in line for line in lines)
    with Ledger.open(tmp_path / "l.db") as ledger:
        (recorded,) = ledger.run(result.run_id).part("samples")
    assert recorded["figures"]["output_throughput"] == result.figures["output_throughput"]


def test_load_that_fails_tells_the_benchmark_s_own_words(served: Serve) -> None:
    """An engine that dies of the load: the benchmark's last lines are the error's."""
    server = served(fail="serve")

    with pytest.raises(CheckFailed, match="requests failed"):
        load(server.machine, "baseline", LoadSpec(2, 2, 4, 4))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("concurrency=64", LoadSpec(64, 256)),
        ("concurrency=2 requests=3", LoadSpec(2, 3)),
        ("concurrency=2,tool=aiperf,input=9,output=8", LoadSpec(2, 8, 9, 8, "aiperf")),
    ],
)
def test_a_load_is_read(text: str, spec: LoadSpec) -> None:
    """Keys and numbers, in any order."""
    assert LoadSpec.parse(text) == spec


@pytest.mark.parametrize("text", ["64", "concurrency=0", "concurrency=x", "rate=3", "tool=wrk"])
def test_a_load_that_cannot_be_read(text: str) -> None:
    """What is wrong is named before anything is asked of a machine."""
    with pytest.raises(UsageError, match="--load"):
        LoadSpec.parse(text)


def test_every_shipped_prompt_is_there() -> None:
    """The texts are package data; each run's copy begins with a line of its own."""
    for name in prompts.NAMES:
        text = prompts.prompt(name)
        assert text.for_run(3) == f"(3)\n{text.text}"
        assert text.text.split()
    with pytest.raises(UsageError, match="no prompt is called limerick"):
        prompts.prompt("limerick")


def test_the_command(commands) -> None:
    """``eagleops bench --json`` is one document with the keys that stay."""
    ledger = f"ledger: {commands.folder}/ledger.db"
    commands.write(sim="{start_s: 0.5, warmup_s: 0.1, tok_s: 200}", more=[ledger])
    commands("launch", "--no-verify")

    answer = commands("bench", "--runs", "2", "--tokens", "40", "--json")

    document = answer.document
    assert (answer.exit_status, document["ok"], document["command"]) == (0, True, "bench")
    assert set(document["tok_s"]) >= {"median", "low", "high", "samples"}
    assert (document["runs"], len(document["measurements"])) == (2, 2)
    assert {"ttft_ms", "accept_length", "cycle_ms", "throttled_runs", "run_id"} <= set(document)
    shown = commands("bench", "--runs", "1", "--tokens", "40")
    assert f"recorded as run {document['run_id']}" in " ".join(shown.stdout.split())
