"""The main job on a real vLLM with two workers: over SSH, and inside a container."""

from __future__ import annotations

import pytest

from parts.poll import until

pytestmark = pytest.mark.real_engine

WORKERS = ("VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1")
OURS = ("NCCL_ALGO", "NCCL_PROTO", "VLLM_CPU_OMP_THREADS_BIND")


def verdicts(document, name: str) -> dict[str, str]:
    """What verify-env says of one variable, by process title."""
    return {
        process["title"]: process["variables"][name]["verdict"]
        for process in document["processes"]
        if process["title"] in WORKERS
    }


def servers(desk) -> list[dict]:
    """What status says of the servers: that there is no GPU here is no fault of theirs."""
    return desk.asks("status")["servers"]


def the_main_job(desk, model, profile: str, initial: str) -> None:
    """doctor, reset, launch, one completion, bench, verify-env, status, stop.

    Args:
        desk: Where it is typed.
        model: Which model the server is asked for.
        profile: The profile to launch.
        initial: What the first witness is expected to be in each worker.
    """
    checks = {check["id"]: check["state"] for check in desk.asks("doctor", status=1)["checks"]}
    # There is no GPU here, and doctor says so; the rest holds.
    assert {name for name, state in checks.items() if state == "fail"} == {"gpus"}
    desk.shows("doctor", status=1)
    desk.shows("reset-gpus")
    desk.shows("launch", "--profile", profile)

    status, answer = desk.completes(model)
    assert (status, answer["usage"]["completion_tokens"]) == (200, 8)

    measured = desk.asks("bench", "--prompt", "short", "--runs", "2", "--tokens", "200")
    counts = [one["reply"]["completion_tokens"] for one in measured["measurements"]]
    assert (counts, measured["accept_length"]) == ([200, 200], None)
    assert measured["tok_s"]["low"] > 0
    assert measured["accept_length_source"] == "not reported"
    desk.shows("bench", "--prompt", "short", "--runs", "3", "--tokens", "200")

    environment = desk.asks("verify-env")
    for name in OURS:
        assert verdicts(environment, name) == dict.fromkeys(WORKERS, "ok")
    witnesses = {p["title"]: p["initial"] for p in environment["processes"]}
    assert {title: witnesses[title] for title in WORKERS} == dict.fromkeys(WORKERS, initial)
    desk.shows("verify-env")

    (server,) = servers(desk)
    assert (server["profile"], server["state"], server["port"]) == (profile, "ready", desk.port)
    desk.shows("status")
    desk.shows("stop")
    assert [server["state"] for server in servers(desk)] == ["exited"]


def test_the_main_job_over_ssh(over_ssh, real_engine) -> None:
    """Over SSH, and as vLLM is by default: its workers' titles overwrite the first witness.

    The user's variables are proven in the engine core and in each worker all the same.
    """
    the_main_job(over_ssh, real_engine.model, "tiny-titled", "partly_overwritten")


def test_the_main_job_in_a_container(in_the_container, real_engine) -> None:
    """Over SSH and pct, and as eagleops launches: the first witness stays whole."""
    the_main_job(in_the_container, real_engine.model, "tiny", "whole")


def test_a_server_that_is_ready_and_cannot_serve(over_ssh, real_engine) -> None:
    """Ready is not serving: this model's first completion ends the engine, and status tells."""
    over_ssh.shows("launch", "--profile", "cannot-serve")

    status, _ = over_ssh.completes(real_engine.model_cannot_serve)
    assert status == 500

    def ended():
        (server,) = servers(over_ssh)
        return server["state"] == "exited"

    until(ended, limit_s=60, interval_s=1)
    over_ssh.shows("status")
    log = "\n".join(over_ssh.asks("logs", "--name", "cannot-serve", "--lines", "400")["lines"])
    assert "head_dim=16" in log
