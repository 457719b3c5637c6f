"""Synthetic restarts: what the ledger would hold of them, without a server."""

from __future__ import annotations

from typing import Any

from eagleops.comparison.trial import Restarts, Trial
from eagleops.comparison.verdict import verdicts
from eagleops.profile import Profile
from eagleops.workflows.compare_plan import Protocol, plan_comparison
from eagleops.workflows.compare_result import CompareResult

SECRET = "hf_never_shown_anywhere"
BASELINE = Profile(
    name="baseline",
    engine="sglang",
    model="/shared/kimi-k2.5-int4",
    port=8000,
    args={"tp-size": 2},
    env={"NCCL_PROTO": "LL", "HF_TOKEN": SECRET},
)
EAGLE = BASELINE.with_(
    name="eagle3-2step",
    args={
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": "/data/eagle3",
        "speculative-num-steps": 2,
        "speculative-eagle-topk": 1,
        "speculative-num-draft-tokens": 3,
    },
)


def parts_of(
    profile: Profile, speeds: list[float], *, throttled: int = 0, start_s: float = 1.8e9
) -> dict[str, Any]:
    """What the ledger would hold of a restart."""
    speculative = "speculative-algorithm" in profile.args
    measurements = [
        {
            "number": number,
            "begun_utc": f"2027-01-15T08:00:{10 * number:02d}.000000Z",
            "tok_s": speed,
            "throttled": number <= throttled,
            "reply": {"last_s": 5.0, "correct_drafts": [40, 45, 15] if speculative else []},
        }
        for number, speed in enumerate(speeds, 1)
    ]
    variables = {
        name: {"verdict": "ok", "initial": value, "live": value, "effective": None, "notes": []}
        for name, value in profile.env.items()
    }
    gpu = {"index": 0, "power_w": 210.0, "temperature_c": 61, "sm_clock_mhz": 2600}
    reasons = ["sw_thermal_slowdown"] if throttled else []
    return {
        "spec": {
            "argv": [
                "python3",
                "-m",
                "sglang.launch_server",
                "--api-key",
                SECRET,
                "--tp-size",
                "2",
            ],
            "env": dict(profile.env),
        },
        "snapshot": {
            "machine": {"hostname": "gpu-box", "kernel": "6.8.12"},
            "driver_version": "580.95",
            "gpus": [{"index": 0, "name": "NVIDIA <simulated>"}],
        },
        "environment": {
            "expected": dict(profile.env),
            "counts": {"ok": len(variables), "wrong": 0, "missing": 0, "unknown": 0},
            "processes": [{"pid": 7, "counted": True, "variables": variables}],
        },
        "samples": measurements,
        "telemetry": {
            "samples": [
                {"utc_s": start_s + at_s, "gpus": [{**gpu, "throttle_reasons": reasons}]}
                for at_s in range(50)
            ]
        },
        "bench": {
            "ttft_ms": 60.0,
            "accept_length": 1.84 if speculative else None,
            "cycle_ms": 30.6 if speculative else None,
            "notes": [],
        },
    }


def trials_of(profile: Profile, speeds: list[float], *, throttled: int = 0) -> Restarts:
    """A restart for each speed; the last one with so many throttled requests of three."""
    trials = [
        Trial.of_parts(
            profile.name,
            number,
            parts_of(profile, [speed] * 3, throttled=throttled if number == len(speeds) else 0),
            100 + number,
        )
        for number, speed in enumerate(speeds, 1)
    ]
    return Restarts(profile.name, tuple(trials))


def example() -> CompareResult:
    """EAGLE-3 against the baseline, five restarts each, one of them throttled."""
    plan = plan_comparison("box", "python3", (BASELINE, EAGLE), Protocol(restarts=5))
    baseline = trials_of(BASELINE, [82.0, 82.5, 81.8, 82.4, 82.3])
    eagle = trials_of(EAGLE, [60.1, 59.8, 60.3, 60.0, 44.0], throttled=2)
    found = verdicts(baseline, (eagle,), draft_tokens={"eagle3-2step": 3}, host="box")
    return CompareResult(
        host="box", id="c0ffee", plan=plan, restarts=(baseline, eagle), verdicts=found
    )
