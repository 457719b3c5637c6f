"""The stand-in vLLM, held against a real 0.32.0."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eagleops.sim.box import SimBox
from eagleops.sim.vllm.metrics import accepted_per_position
from eagleops.sim.vllm.report import spec_decoding
from parts.poll import until
from sim.simulated import DATA, VLLM, SimServer

REAL = DATA / "vllm"
EAGLE3 = ("--speculative-config", '{"method":"eagle3","model":"/d","num_speculative_tokens":2}')
API_SERVER = ("-m", "vllm.entrypoints.openai.api_server", "--model", "/shared/model")
Launch = Callable[..., SimServer]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimServer]:
    """A quick server for tests that only ask it."""
    folder = tmp_path_factory.mktemp("vllm")
    made = SimServer(SimBox.prepare(folder / "box"), folder, VLLM, sim={"speed": 20})
    yield made.wait_ready()
    made.stop()


def real_events() -> list[Any]:
    """The captured stream."""
    text = (REAL / "completions-stream.txt").read_text(encoding="utf-8")
    return [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]


@pytest.mark.parametrize("argv", [VLLM, API_SERVER])
def test_its_tree_is_the_real_ones(launch: Launch, argv: tuple[str, ...]) -> None:
    """API server, engine core, workers below it, a resource tracker; by either entry point."""
    server = launch("--tensor-parallel-size", "2", argv=argv)

    titles = sorted(server.members().values())

    assert titles[-3:] == ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"]
    assert sum("multiprocessing.resource_tracker" in name for name in titles) == 1
    core = server.worker("VLLM::EngineCore")
    parent = Path(f"/proc/{server.worker('VLLM::Worker_TP1')}/stat").read_text().split()[3]
    assert int(parent) == core


def test_one_gpu_has_no_worker_of_its_own(launch: Launch, tmp_path: Path) -> None:
    """The engine core runs the model, and holds the GPU."""
    server = launch(argv=VLLM)

    box = SimBox.prepare(tmp_path / "a box")
    assert not [name for name in server.members().values() if "Worker" in name]
    assert [process.title for process in box.read_gpus()[0].processes] == ["VLLM::EngineCore"]


def test_it_refuses_until_it_is_ready(launch: Launch) -> None:
    """Bound, not listening: connection refused; then 200 at once."""
    server = launch(argv=VLLM, ready=False, sim={"start_s": 0.5})
    seen: list[int] = []

    def look() -> bool:
        status = server.get("/health")[0]
        if status not in seen:
            seen.append(status)
        return status == 200

    until(look)
    assert seen == [0, 200]


def test_a_completion_has_the_real_shape(server: SimServer) -> None:
    """Key for key, but for two that tell of experts and of metrics."""
    real = json.loads((REAL / "completions.json").read_text(encoding="utf-8"))

    status, reply = server.post(
        "/v1/completions", {"model": "/shared/model", "prompt": "a b", "max_tokens": 8}
    )

    assert status == 200
    assert list(reply) == list(real)
    assert set(real["choices"][0]) - set(reply["choices"][0]) == {
        "prompt_token_ids",
        "routed_experts",
    }
    assert reply["usage"] == {
        "prompt_tokens": 2,
        "total_tokens": 10,
        "completion_tokens": 8,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }
    assert reply["id"].startswith("cmpl-")


def test_a_stream_has_the_real_shape(server: SimServer) -> None:
    """A chunk a token, usage last."""
    real = real_events()
    body = {"prompt": "a", "max_tokens": 4, "stream_options": {"include_usage": True}}

    ours = server.documents("/v1/completions", body)

    assert len(ours) == len(real) == 5
    assert [set(one) for one in ours] == [set(one) for one in real]
    assert [set(one["choices"][0]) for one in ours[:4]] == [
        set(one["choices"][0]) for one in real[:4]
    ]
    assert [one["choices"][0]["finish_reason"] for one in ours[:4]] == [None, None, None, "length"]
    assert set(ours[4]["usage"]) == set(real[4]["usage"])


def test_chat_has_messages_and_deltas(server: SimServer) -> None:
    """Whole and as a stream."""
    body = {"messages": [{"role": "user", "content": "a b"}], "max_tokens": 3}

    whole = server.post("/v1/chat/completions", body)[1]
    deltas = [one["choices"][0]["delta"] for one in server.documents("/v1/chat/completions", body)]

    assert whole["choices"][0]["message"]["content"] == "This text is"
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta["content"] for delta in deltas) == "This text is"


def test_another_models_name_is_not_found(server: SimServer) -> None:
    """With vLLM's error object."""
    real = json.loads((REAL / "not-found.json").read_text())["error"]

    status, reply = server.post("/v1/completions", {"model": "nope", "prompt": "a"})

    assert status == 404
    assert {**reply["error"], "message": ""} == {**real, "message": ""}
    assert reply["error"]["message"].startswith("The model `nope` does not exist.")


def test_it_tells_its_models_and_version(launch: Launch) -> None:
    """The served name as id, the path as root."""
    server = launch("--served-model-name", "kimi", argv=VLLM)
    real = json.loads((REAL / "v1-models.json").read_text())

    models = json.loads(server.get("/v1/models")[1])

    assert set(models["data"][0]) == set(real["data"][0])
    assert (models["data"][0]["id"], models["data"][0]["root"]) == ("kimi", "/shared/model")
    assert json.loads(server.get("/version")[1]) == {"version": "0.32.0+simulated"}


def test_metrics_have_the_real_names_and_labels(launch: Launch) -> None:
    """Counters of speculation among them: one plus accepted over drafts is the accept length."""
    server = launch(*EAGLE3, argv=VLLM, sim={"speed": 20, "accept_length": 2.0})
    server.post("/v1/completions", {"prompt": "a b", "max_tokens": 201})

    page = server.get("/metrics")[1]

    def series(text: str) -> set[tuple[str, tuple[str, ...]]]:
        found = re.findall(r"^(vllm:\w+)\{([^}]*)\}", text, re.MULTILINE)
        return {(n, tuple(sorted(set(re.findall(r"(\w+)=", ls)) - {"le"}))) for n, ls in found}

    captured = series((REAL / "metrics.txt").read_text())
    own = {one for one in series(page) if not re.search("spec_|inter_token|e2e", one[0])}
    assert own - captured == set()
    values = dict(re.findall(r"^vllm:spec_decode_(\w+)\{[^}]*\} ([\d.]+)$", page, re.MULTILINE))
    drafts = float(values["num_drafts_total"])
    assert float(values["num_draft_tokens_total"]) == 2 * drafts
    assert 1 + float(values["num_accepted_tokens_total"]) / drafts == pytest.approx(2, rel=0.02)
    positions = re.findall(r'per_pos_total\{.*position="(\d)"\} ([\d.]+)', page)
    assert [at for at, _ in positions] == ["0", "1"]
    assert sum(float(n) for _, n in positions) == float(values["num_accepted_tokens_total"])


def test_positions_are_counted_from_the_first_draft() -> None:
    """Three cycles with none right, two with one, one with two."""
    assert accepted_per_position([3, 2, 1], drafts=3) == [3, 1, 0]


def test_the_statistics_line_is_the_real_ones() -> None:
    """Its words and numbers, per interval of ten seconds."""
    assert spec_decoding(100, 2, [60, 24]) == (
        "SpecDecoding metrics: Mean acceptance length: 1.84, Accepted throughput: 8.40 tokens/s, "
        "Drafted throughput: 20.00 tokens/s, Accepted: 84 tokens, Drafted: 200 tokens, "
        "Per-position acceptance rate: 0.600, 0.240, Avg Draft acceptance rate: 42.0%"
    )


def test_sigterm_ends_with_status_0(launch: Launch) -> None:
    """As the real one; no process is left."""
    server = launch("-tp", "2", argv=VLLM)

    server.process.terminate()

    assert server.wait_ended() == 0
    assert "[shutdown] API server: shutdown triggered" in server.log


def test_sigkill_of_the_api_server_leaves_the_engine_behind(launch: Launch) -> None:
    """Seen on a real 0.32.0: engine core and workers live on, and hold the GPUs."""
    server = launch("-tp", "2", argv=VLLM)

    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    time.sleep(0.5)

    titles = sorted(name for name in server.members().values() if name.startswith("VLLM"))
    assert titles == ["VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"]


def test_it_can_be_told_to_leave_nobody_behind(launch: Launch) -> None:
    """``orphans: false``."""
    server = launch("-tp", "2", argv=VLLM, sim={"orphans": False})

    os.kill(server.pid, signal.SIGKILL)

    assert server.wait_ended() == -signal.SIGKILL


def test_workers_die_with_their_engine_core(launch: Launch) -> None:
    """And the API server says so, and ends."""
    server = launch("-tp", "2", argv=VLLM)

    os.kill(server.worker("VLLM::EngineCore"), signal.SIGKILL)

    assert server.wait_ended() == 1
    assert "Engine core proc EngineCore died unexpectedly" in server.log


FAILURES = {
    "exit": (1, "does not appear to have a file named config.json"),
    "import": (1, "ModuleNotFoundError: No module named 'deep_gemm'"),
    "killed": (1, "WorkerProc initialization failed due to an exception"),
    "memory": (1, "ValueError: No available memory for the cache blocks."),
    "nccl": (1, "RuntimeError: NCCL error: unhandled cuda error"),
    "oom": (1, "torch.OutOfMemoryError: CUDA out of memory."),
    "port": (1, "OSError: [Errno 98] Address already in use"),
    "segv": (-signal.SIGSEGV, "SIMULATED"),
    "crash": (1, "died unexpectedly (exit code: -9), shutting down executor."),
}


@pytest.mark.parametrize("fail", FAILURES)
def test_it_fails_in_the_real_ones_words(launch: Launch, fail: str) -> None:
    """The exit status, and the cause in the log; no process is left."""
    status, words = FAILURES[fail]

    server = launch("-tp", "2", argv=VLLM, ready=False, sim={"fail": fail, "after_s": 0.1})

    assert server.wait_ended() == status
    assert words in server.log


def test_the_first_completion_can_kill_it(launch: Launch) -> None:
    """HTTP 500, then its end: seen on the real one."""
    server = launch("-tp", "2", argv=VLLM, sim={"fail": "serve"})

    status, reply = server.post("/v1/completions", {"prompt": "a"})

    assert status == 500
    assert reply["error"]["message"].startswith("EngineCore encountered an issue.")
    assert server.wait_ended() == 1


def test_gpus_that_others_hold_fail_the_start(launch: Launch) -> None:
    """In vLLM's words, with what is free and what it wants."""
    launch("-tp", "2", argv=VLLM)
    second = launch("-tp", "2", argv=VLLM, ready=False)

    assert second.wait_ended() == 1
    assert re.search(
        r"Free memory on device cuda:\d \([\d.]+/[\d.]+ GiB\) on startup is less than desired GPU "
        r"memory utilization \(0\.92, [\d.]+ GiB\)\.",
        second.log,
    )


def test_two_servers_can_share_a_port(launch: Launch, tmp_path: Path) -> None:
    """SO_REUSEPORT, as the real one: no error tells that an old server is there."""
    first = launch(argv=VLLM, env={"CUDA_VISIBLE_DEVICES": "0"})

    second = launch(argv=VLLM, port=first.port, env={"CUDA_VISIBLE_DEVICES": "1"})

    assert first.process.poll() is None
    assert second.process.poll() is None


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("--enable-warp-drive",),
            "vllm serve: error: unrecognized arguments: --enable-warp-drive",
        ),
        (("--speculative-config", "eagle3"), "argument --speculative-config/-sc: Value eagle3"),
        (("--tensor-parallel-size", "two"), "invalid int value: 'two'"),
    ],
)
def test_bad_flags_end_with_status_2(launch: Launch, flags: tuple[str, ...], words: str) -> None:
    """Argparse's words."""
    server = launch(*flags, argv=VLLM, ready=False)

    assert server.wait_ended() == 2
    assert words in server.log


def test_flags_are_read_as_vllm_reads_them(launch: Launch) -> None:
    """Underscores for dashes, and dotted names for JSON."""
    server = launch(
        *("--tensor_parallel_size=2", "--speculative-config.method", "eagle3"),
        *("--speculative-config.num_speculative_tokens", "3", "--no-enable-prefix-caching"),
        argv=VLLM,
    )

    assert "VLLM::Worker_TP1" in server.members().values()
    assert 'spec_decode_num_accepted_tokens_per_pos_total{engine="0"' in server.get("/metrics")[1]


def test_sigterm_breaks_off_what_is_on_its_way(launch: Launch) -> None:
    """It aborts: the stream ends without its ``[DONE]``, and quietly."""
    server = launch(argv=VLLM, sim={"tok_s": 20})
    stream = server.events("/v1/completions", {"prompt": "a", "max_tokens": 500})
    next(stream)

    server.process.terminate()

    assert "[DONE]" not in [data for _, data in stream]
    assert server.wait_ended() == 0
    assert "Traceback" not in server.log
