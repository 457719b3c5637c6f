"""The stand-in SGLang, held against a real 0.5.17: its tree, its API, its log, its end."""

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
from parts.poll import until
from sim.simulated import DATA, EAGLE3, SGLANG, SimServer

REAL = DATA / "sglang"
TEAM = (
    *("--trust-remote-code", "--tp-size", "8", "--mem-fraction-static", "0.88"),
    *("--num-continuous-decode-steps", "4", "--disable-custom-all-reduce"),
)


def real(name: str) -> Any:
    """A captured reply."""
    return json.loads((REAL / name).read_text(encoding="utf-8"))


def real_events(name: str) -> list[Any]:
    """A captured stream's last events."""
    lines = (REAL / name).read_text(encoding="utf-8").split("\n\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def kinds(document: Any) -> Any:
    """A document with each value replaced by its type; whole numbers and others are one."""
    if isinstance(document, dict):
        return {key: kinds(value) for key, value in document.items()}
    if isinstance(document, list):
        return [kinds(document[0])] if document else []
    return "number" if type(document) in {int, float} else type(document).__name__


def shared(folder: Path, *flags: str) -> Iterator[SimServer]:
    """A quick server for tests that only ask it."""
    box = SimBox.prepare(folder / "box")
    server = SimServer(box, folder, (*SGLANG, *flags), sim={"speed": 20})
    yield server.wait_ready()
    server.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimServer]:
    """A plain server, shared."""
    yield from shared(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def eagle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimServer]:
    """A server with EAGLE3, two steps, shared."""
    yield from shared(tmp_path_factory.mktemp("eagle"), *EAGLE3)


@pytest.mark.alone
def test_eight_workers_start_within_three_seconds(launch: Callable[..., SimServer]) -> None:
    """Processes and all, with the default start-up time of 1.5 s."""
    began_s = time.monotonic()
    server = launch(*TEAM, sim={"start_s": 1.5, "warmup_s": 0.3})
    took_s = time.monotonic() - began_s

    print(f"8 workers were ready after {took_s:.2f} s")
    assert took_s < 3
    assert server.log.count("Init torch distributed ends.") == 8


def test_its_tree_has_the_engines_titles(launch: Callable[..., SimServer]) -> None:
    """A scheduler for each rank, a detokenizer, and Python's resource tracker."""
    server = launch("--tp-size", "2")

    titles = sorted(server.members().values())

    assert [name for name in titles if name.startswith("sglang::")] == [
        "sglang::detokenizer",
        "sglang::scheduler_TP0",
        "sglang::scheduler_TP1",
    ]
    assert sum("multiprocessing.resource_tracker" in name for name in titles) == 1
    assert len(titles) == 5
    assert Path(f"/proc/{server.worker('sglang::scheduler_TP0')}/comm").read_text() == (
        "sglang::schedul\n"
    )


def test_one_rank_has_no_number(server: SimServer) -> None:
    """``sglang::scheduler``, and its log lines name no rank."""
    assert server.worker("sglang::scheduler")
    assert re.search(r"^\[[-0-9]+ [:0-9]+\] Load weight begin\.", server.log, re.MULTILINE)


def test_it_becomes_ready_as_the_real_one(launch: Callable[..., SimServer]) -> None:
    """Refused while loading, then 503 on /health with 200 on /model_info, then 200."""
    server = launch(ready=False, sim={"start_s": 0.5, "warmup_s": 2.0})
    seen: list[tuple[int, int]] = []

    def look() -> bool:
        state = (server.get("/health")[0], server.get("/model_info")[0])
        if not seen or seen[-1] != state:
            seen.append(state)
        return state == (200, 200)

    until(look)

    assert [state for state in seen if state != (0, 200)] == [(0, 0), (503, 200), (200, 200)]
    assert "The server is fired up and ready to roll!" in server.log


def test_the_log_has_the_real_ones_lines(eagle: SimServer) -> None:
    """In its order, among others."""
    eagle.post("/generate", {"text": "a b", "sampling_params": {"max_new_tokens": 120}})
    milestones = (
        r"SIMULATED: this is no real SGLang",
        r"server_args=ServerArgs\(model_path='/shared/model', ",
        r"Init torch distributed begin\.",
        r"Init torch distributed ends\. elapsed=[\d.]+ s, mem usage=[\d.]+ GB",
        r"Load weight begin\. avail mem=[\d.]+ GB",
        r"Load weight end\. elapsed=[\d.]+ s, type=\w+, avail mem=[\d.]+ GB, mem usage=[\d.]+ GB\.",
        r"KV Cache is allocated\. dtype: torch\.bfloat16, #tokens: \d+, K size: [\d.]+ GB, ",
        r"Capture target verify CUDA graph begin\.",
        r"max_total_num_tokens=\d+, chunked_prefill_size=8192, ",
        r"Engine startup timings \(s\): ",
        r"INFO:     Started server process \[\d+\]",
        r"INFO:     Uvicorn running on http://127\.0\.0\.1:\d+ \(Press CTRL\+C to quit\)",
        r"INFO:     127\.0\.0\.1:\d+ - \"POST /generate HTTP/1\.1\" 200 OK",
        r"The server is fired up and ready to roll!",
        r"Prefill batch, #new-seq: 1, #new-token: 2, #cached-token: 0, ",
        r"Decode batch, #running-req: 1, #token: \d+, token usage: [\d.]+, accept len: [\d.]+, ",
        r"accept rate: [\d.]+, cuda graph: True, gen throughput \(token/s\): [\d.]+, #queue-req: 0",
    )

    log = eagle.log
    places = [re.search(milestone, log) for milestone in milestones]

    assert None not in places
    assert [place.start() for place in places] == sorted(place.start() for place in places)


@pytest.mark.parametrize(("which", "name"), [("server", "plain"), ("eagle", "eagle3")])
def test_generate_has_the_real_shape(request: pytest.FixtureRequest, which: str, name: str) -> None:
    """Key for key, in order, and type for type; whole and as a stream."""
    server: SimServer = request.getfixturevalue(which)
    body = {"text": "a b c", "sampling_params": {"max_new_tokens": 64}}
    whole = real(f"generate-{name}.json")
    *_, real_middle, real_last = real_events(f"generate-{name}-stream.txt")

    status, reply = server.post("/generate", body)
    events = [data for _, data in server.events("/generate", body)]

    assert status == 200
    assert kinds(reply) == kinds(whole)
    assert list(reply["meta_info"]) == list(whole["meta_info"])
    *middles, last = [json.loads(data) for data in events[:-1]]
    assert events[-1] == "[DONE]"
    streamed = real_middle["meta_info"] | {"cached_tokens_details": None}
    assert kinds(middles[5]["meta_info"]) == kinds(streamed)
    assert list(last["meta_info"]) == list(real_last["meta_info"])
    assert last["meta_info"]["finish_reason"] == {"type": "length", "length": 64}
    assert last["text"] == reply["text"]
    assert len(last["output_ids"]) == last["meta_info"]["completion_tokens"] == 64
    assert middles[5]["text"] == last["text"][: len(middles[5]["text"])]


def test_speculation_adds_up(eagle: SimServer) -> None:
    """Every figure of meta_info is consistent with every other, as in the captured reply."""
    reply = real("generate-eagle3.json")["meta_info"]
    body = {"text": "a", "sampling_params": {"max_new_tokens": 100}}
    for meta in (reply, eagle.post("/generate", body)[1]["meta_info"]):
        histogram, verified = meta["spec_correct_drafts_histogram"], meta["spec_verify_ct"]
        assert sum(histogram) == verified
        assert meta["spec_num_proposed_drafts"] == 2 * verified
        right = sum(drafts * cycles for drafts, cycles in enumerate(histogram))
        assert meta["spec_num_correct_drafts"] == right == meta["completion_tokens"] - 1 - verified
        assert meta["spec_accept_length"] == meta["completion_tokens"] / verified
        assert meta["spec_accept_rate"] == right / (2 * verified)


def test_completions_have_the_real_shape(server: SimServer) -> None:
    """One chunk a token, usage last where it was asked for."""
    *_, middle, last, usage = real_events("completions-stream.txt")
    body = {"model": "x", "prompt": "a b", "max_tokens": 4}

    asked = {**body, "stream_options": {"include_usage": True}}
    events = server.documents("/v1/completions", asked)

    assert len(events) == 5
    assert [kinds(one) for one in events[:3]] == [kinds(middle)] * 3
    assert kinds(events[3]) == kinds(last)
    assert kinds(events[4]) == kinds(usage)
    assert events[4]["usage"] == {
        "prompt_tokens": 2,
        "total_tokens": 6,
        "completion_tokens": 4,
        "reasoning_tokens": 0,
    }
    assert "".join(one["choices"][0]["text"] for one in events[:4]) == "This text is simulated"
    assert server.post("/v1/completions", body)[1]["usage"] == events[4]["usage"]


def test_a_stream_without_usage_has_no_usage_chunk(server: SimServer) -> None:
    """As OpenAI's: only where stream_options ask."""
    events = [
        data for _, data in server.events("/v1/completions", {"prompt": "a", "max_tokens": 2})
    ]

    assert [json.loads(data)["usage"] for data in events[:-1]] == [None, None]


def test_chat_streams_deltas(server: SimServer) -> None:
    """A role first, then text, and a finish reason with the last."""
    body = {"model": "x", "messages": [{"role": "user", "content": "a b"}], "max_tokens": 3}

    chunks = [
        json.loads(data)
        for _, data in server.events("/v1/chat/completions", body)
        if data[0] == "{"
    ]
    whole = server.post("/v1/chat/completions", body)[1]

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert (
        "".join(delta["content"] for delta in deltas) == whole["choices"][0]["message"]["content"]
    )
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert whole["object"] == "chat.completion"
    assert whole["usage"]["completion_tokens"] == 3


def test_server_info_has_the_real_ones_keys(eagle: SimServer) -> None:
    """All but what is told of CUDA graphs; and what was given on the command line."""
    captured = real("server-info.json")
    eagle.post("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 200}})

    info = json.loads(eagle.get("/server_info")[1])

    assert set(captured) - set(info) == set()
    state, captured_state = info["internal_states"][0], captured["internal_states"][0]
    private = {key for key in captured_state if key.startswith("_")} | {"grpc_worker_threads"}
    assert set(captured_state) - set(state) - private == set()
    assert info["speculative_num_draft_tokens"] == 3
    assert info["model_path"] == "/shared/model"
    assert info["version"] == "0.5.17+simulated"
    assert info["simulated"] is True
    assert state["avg_spec_accept_length"] == pytest.approx(1.84, rel=0.02)


def test_flushing_begins_the_accept_length_anew(launch: Callable[..., SimServer]) -> None:
    """The lifetime mean is gone until the next cycle."""
    eagle = launch(*EAGLE3, sim={"speed": 20})
    eagle.post("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 50}})

    status, text = eagle.get("/flush_cache")

    assert (status, text) == (200, (REAL / "flush-cache.txt").read_text())
    assert (
        "avg_spec_accept_length"
        not in json.loads(eagle.get("/server_info")[1])["internal_states"][0]
    )


def test_a_busy_server_does_not_flush(launch: Callable[..., SimServer]) -> None:
    """400, as the real one."""
    server = launch(sim={"tok_s": 50})
    stream = server.events("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 500}})
    next(stream)

    assert server.get("/flush_cache")[0] == 400
    stream.close()


@pytest.mark.parametrize("path", ["/model_info", "/get_model_info"])
def test_model_info_tells_the_model(server: SimServer, path: str) -> None:
    """Under its new name and its old one, which the log calls deprecated."""
    info = json.loads(server.get(path)[1])

    assert set(info) <= set(real("model-info.json"))
    assert info["model_path"] == "/shared/model"
    assert ("is deprecated" in server.log) == (path == "/get_model_info")


def test_models_have_the_real_shape(server: SimServer) -> None:
    """With the served name as id and root."""
    models = json.loads(server.get("/v1/models")[1])

    assert kinds(models) == kinds(real("v1-models.json"))
    assert models["data"][0]["id"] == models["data"][0]["root"] == "/shared/model"


def test_metrics_have_the_real_names_and_labels(launch: Callable[..., SimServer]) -> None:
    """Each sample is one that the real page has, whatever its value."""
    eagle = launch(*EAGLE3, "--enable-metrics", sim={"speed": 20})
    eagle.post("/generate", {"text": "a b", "sampling_params": {"max_new_tokens": 100}})
    page = eagle.get("/metrics")[1]

    def series(text: str) -> set[tuple[str, tuple[str, ...]]]:
        found = re.findall(r"^(sglang:\w+)\{([^}]*)\}", text, re.MULTILINE)
        ignored = {"is_streaming", "le"}
        return {
            (name, tuple(sorted(set(re.findall(r"(\w+)=", labels)) - ignored)))
            for name, labels in found
        }

    captured = series((REAL / "metrics.txt").read_text())
    own = {one for one in series(page) if not re.search("e2e|token_usage|queue|max_total", one[0])}
    assert own - captured == set()
    assert re.search(r"^sglang:generation_tokens_total\{.*\} 108\.0$", page, re.MULTILINE)
    accept = re.search(r"^sglang:spec_accept_length\{.*\} ([\d.]+)$", page, re.MULTILINE)
    assert float(accept[1]) == pytest.approx(1.84, rel=0.03)
    assert "sglang:time_to_first_token_seconds_bucket" in page


def test_metrics_are_there_on_demand_alone(launch: Callable[..., SimServer]) -> None:
    """Without --enable-metrics the path does not exist."""
    assert launch().get("/metrics") == (404, '{"detail":"Not Found"}')


def test_bad_requests_are_refused(server: SimServer) -> None:
    """With 400 and a sentence; the server lives on."""
    assert server.post("/generate", {})[0] == 400
    assert (
        server.post("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 0}})[0] == 400
    )
    assert server._request("POST", "/generate", "no json")[0] == 400
    assert server.get("/health")[0] == 200


def test_a_batch_gets_a_list(server: SimServer) -> None:
    """One reply for each prompt."""
    body = {"text": ["a", "b c"], "sampling_params": {"max_new_tokens": 2}}

    replies = server.post("/generate", body)[1]

    assert [one["meta_info"]["prompt_tokens"] for one in replies] == [1, 2]


def test_connections_are_kept(server: SimServer) -> None:
    """HTTP/1.1: two requests on one connection, a stream among them."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for _ in range(2):
        body = json.dumps({"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 2}})
        connection.request("POST", "/generate", body)
        first_socket = connection.sock
        assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
        assert connection.sock is first_socket
    connection.close()


def test_sigterm_drains_and_ends_as_the_real_one(launch: Callable[..., SimServer]) -> None:
    """Health says no, the running reply comes to its end, new ones are refused, then SIGKILL."""
    server = launch(sim={"tok_s": 100})
    stream = server.events("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 300}})
    next(stream)

    server.process.terminate()
    until(lambda: server.get("/health")[0] == 503)
    refused = server.post("/generate", {"text": "b"})[0]
    events = [data for _, data in stream]

    assert refused == 503
    assert events[-1] == "[DONE]"
    assert server.wait_ended() == -signal.SIGKILL
    for line in ("SIGTERM received.", "Gracefully exiting...", "kill_process_tree called:"):
        assert line in server.log


def test_sigkill_of_the_main_process_takes_its_workers_along(
    launch: Callable[..., SimServer],
) -> None:
    """They asked the kernel for it (PR_SET_PDEATHSIG)."""
    server = launch("--tp-size", "4")

    os.kill(server.pid, signal.SIGKILL)

    assert server.wait_ended() == -signal.SIGKILL
    assert server.members() == {}


def test_orphans_live_on_where_they_are_wanted(
    launch: Callable[..., SimServer], box: SimBox
) -> None:
    """The other case that people meet: no server, and GPUs that are held."""
    server = launch("--tp-size", "2", sim={"orphans": True})
    workers = [pid for pid, name in server.members().items() if name.startswith("sglang::")]

    os.kill(server.pid, signal.SIGKILL)
    server.process.wait()
    time.sleep(0.5)

    assert set(workers) <= set(server.members())
    assert [bool(gpu.used_mib) for gpu in box.read_gpus()] == [True] * 2 + [False] * 6


def test_sigterm_while_loading_just_kills(launch: Callable[..., SimServer]) -> None:
    """The handler is there only once the HTTP server is."""
    server = launch("--tp-size", "2", ready=False, sim={"start_s": 30})
    until(lambda: "Init torch distributed begin" in server.log or server.members())

    server.process.terminate()

    assert server.wait_ended() == -signal.SIGTERM


def test_visible_devices_pick_the_gpus(launch: Callable[..., SimServer], box: SimBox) -> None:
    """CUDA_VISIBLE_DEVICES maps ranks to GPUs."""
    launch("--tp-size", "2", env={"CUDA_VISIBLE_DEVICES": "6,2"})

    held = {gpu.number: gpu.processes[0].title for gpu in box.read_gpus() if gpu.processes}
    assert held == {2: "sglang::scheduler_TP1", 6: "sglang::scheduler_TP0"}


def test_visible_devices_may_be_uuids(launch: Callable[..., SimServer], box: SimBox) -> None:
    """As nvidia-smi tells them."""
    launch(env={"CUDA_VISIBLE_DEVICES": box.read_gpus()[5].uuid})

    assert [gpu.number for gpu in box.read_gpus() if gpu.processes] == [5]


def test_the_teams_flags_are_known(launch: Callable[..., SimServer]) -> None:
    """Every flag of the commands that they type."""
    server = launch(
        *("--trust-remote-code", "--tp-size", "2", "--mem-fraction-static", "0.88"),
        *("--host", "0.0.0.0", "--num-continuous-decode-steps", "4"),
        "--disable-custom-all-reduce",
        *EAGLE3,
    )

    info = json.loads(server.get("/server_info")[1])

    assert info["num_continuous_decode_steps"] == 4
    assert info["disable_custom_all_reduce"] is True
    assert info["max_running_requests"] == 48
    assert "Max running requests is reset to 48 for speculative decoding." in server.log


def test_draft_tokens_follow_the_steps(launch: Callable[..., SimServer]) -> None:
    """With top-k 1 the engine adjusts them, and says so."""
    server = launch(
        *("--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "3"),
        *("--speculative-eagle-topk", "1", "--speculative-num-draft-tokens", "9"),
    )

    assert json.loads(server.get("/server_info")[1])["speculative_num_draft_tokens"] == 4
    assert "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1" in server.log
