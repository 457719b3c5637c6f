"""How readiness and identity are asked for."""

from __future__ import annotations

import pytest

from eagleops.engines import engine

SGLANG = {
    "paths": ["/model_info", "/get_model_info"],
    "field": "model_path",
    "equals": "/models/m",
}
VLLM = {"paths": ["/v1/models"], "field": "data.*.root", "equals": "/models/m"}


def test_sglang_is_asked_to_generate_and_who_it_is(profile) -> None:
    """/health_generate first, for an early /health says yes too soon."""
    assert engine("sglang").readiness(profile("sglang")) == {
        "port": 8000,
        "probes": [
            {"path": "/health_generate", "ok": [200], "missing_ok": [404]},
            {"path": "/health", "ok": [200], "missing_ok": []},
        ],
        "identity": SGLANG,
        "timeout_s": 25,
    }


def test_vllm_is_asked_for_its_health_and_its_models(profile) -> None:
    """The root of a served model is the path that it was started with."""
    assert engine("vllm").readiness(profile("vllm")) == {
        "port": 8000,
        "probes": [{"path": "/health", "ok": [200], "missing_ok": []}],
        "identity": VLLM,
        "timeout_s": 25,
    }


@pytest.mark.parametrize(
    ("values", "identity"),
    [
        ({"args": {"served-model-name": "kimi"}}, SGLANG),
        ({"args": {"api-key": "x"}}, None),
        ({"env": {"SGLANG_USE_MODELSCOPE": "true"}}, None),
        ({"env": {"SGLANG_USE_MODELSCOPE": "0"}}, SGLANG),
    ],
)
def test_sglang_s_identity_is_its_model_s_path(profile, values, identity) -> None:
    """Whatever name it serves it under; not asked for where the answer would mislead."""
    readiness = engine("sglang").readiness(profile("sglang", **values))

    assert readiness is not None
    assert readiness["identity"] == identity


@pytest.mark.parametrize(
    ("values", "identity"),
    [
        (
            {"args": {"served-model-name": "kimi"}},
            {"paths": ["/v1/models"], "field": "data.*.id", "equals": "kimi"},
        ),
        (
            {"args": {"served_model_name": ["kimi", "k2"]}},
            {"paths": ["/v1/models"], "field": "data.*.id", "equals": "kimi"},
        ),
        ({"args": {"api-key": "x"}}, None),
        ({"env": {"VLLM_API_KEY": "x"}}, None),
        ({"inherit": ["VLLM_API_KEY"]}, None),
    ],
)
def test_vllm_s_identity_is_the_name_it_serves(profile, values, identity) -> None:
    """Where it is given one, else the model's path; not asked for behind an API key."""
    readiness = engine("vllm").readiness(profile("vllm", **values))

    assert readiness is not None
    assert readiness["identity"] == identity


def test_what_serves_no_http_is_ready_when_it_lives(profile) -> None:
    """A command, and a node of vLLM without an API."""
    assert engine("command").readiness(profile("command", command=["x"], port=None)) is None
    assert engine("vllm").readiness(profile("vllm", args={"headless": True})) is None


def test_a_command_with_a_port_is_ready_once_it_listens_there(profile) -> None:
    """Nothing is known of its paths; a server that has not bound its port serves nobody."""
    asked = engine("command").readiness(profile("command", command=["x"], port=8000))

    assert (asked["port"], asked["probes"], asked["identity"]) == (8000, [], None)
