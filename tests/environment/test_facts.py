"""What was captured on real GPUs, judged: the pictures that led people astray."""

from __future__ import annotations

import json

import pytest

from eagleops.engines import engine
from eagleops.environment import Engine, judge
from environment import readings
from environment.programs import DATA

ASKED = {
    "NCCL_PROTO": "LL",
    "NCCL_ALGO": "Ring",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MAX_NCHANNELS": "16",
    "NCCL_BUFFSIZE": "16777216",
    "NCCL_NTHREADS": "512",
}
SGLANG = Engine("SGLang", role=engine("sglang").role)
RUNS = dict(readings.sglang_on_one_gpu())


@pytest.mark.parametrize("run", [run for run in RUNS if "noenv" not in run])
def test_the_teams_symptom_is_no_fault_at_all(run: str) -> None:
    """A real SGLang whose workers show none of the six variables runs with all six."""
    report = judge(RUNS[run], ASKED, engine=SGLANG)

    assert (report.ok, report.exit_status) == (True, 0)
    assert report.counts == {"ok": 18, "wrong": 0, "missing": 0, "unknown": 0}
    assert report.conclusion == (
        "6 of 6 variables in effect in 3 of 3 processes; "
        "/proc/PID/environ is overwritten in 2 of them, so it was not used"
    )
    assert [(one.role, one.initial) for one in report.counted] == [
        ("server", "whole"),
        ("scheduler", "partly_overwritten"),
        ("detokenizer", "partly_overwritten"),
    ]


def test_with_spt_noenv_the_first_witness_stays_honest() -> None:
    """The same server launched with SPT_NOENV=1: every block is whole."""
    report = judge(RUNS["results-eagle3-died-and-spt-noenv/noenv"], ASKED, engine=SGLANG)

    assert report.conclusion == "6 of 6 variables in effect in 3 of 3 processes"
    assert {process.initial for process in report.processes} == {"whole"}


@pytest.mark.parametrize("run", RUNS)
def test_what_sglang_sets_itself_is_told_apart_from_what_was_asked_for(run: str) -> None:
    """NVLS=1 was asked for and SGLang has set 0: wrong in the workers, with the reason."""
    main = RUNS[run]["processes"][0]
    overrides = [o for o in engine("sglang").overrides(_profile()) if o.versions == "up to 0.5.4"]
    facts = Engine("SGLang", role=engine("sglang").role, overrides=tuple(overrides))

    report = judge(RUNS[run], {"NCCL_NVLS_ENABLE": "1"}, engine=facts)

    assert report.exit_status == 1
    for _, _, one in report.judged():
        assert (one.verdict.kind, one.verdict.why) == ("wrong", "it is 0")
        assert any("the engine" in note for note in one.verdict.notes)
    assert main["initial"]["variables"].get("NCCL_NVLS_ENABLE") is None


def _profile():
    from eagleops.profile import Profile

    return Profile(name="asked", engine="sglang", env={"NCCL_NVLS_ENABLE": "1"})


def two_gpus(name: str, log: str, pid: int) -> dict[str, object]:
    """A worker of the two-GPU experiments as a result of the operation."""
    facts = {each["name"]: each for each in json.loads((DATA / "two-h200.json").read_text())}
    seen = facts[name]
    assert seen["proc_environ_names"] == []
    return readings.result(
        readings.process(
            pid,
            seen["cmdline"],
            initial=readings.initial({}, "overwritten", 5000, 5000),
            live=readings.live(seen["live"]),
            nccl=readings.log(log, pid),
        )
    )


@pytest.mark.parametrize(
    ("name", "log", "pid"), [("plain", "before-spawn", 1006), ("late", "set-in-worker", 1211)]
)
def test_nccls_log_proves_each_variable_on_two_gpus(name: str, log: str, pid: int) -> None:
    """Whether set before the spawn or in the worker, before NCCL's init: in effect."""
    report = judge(two_gpus(name, log, pid), ASKED, engine=SGLANG)

    assert report.counts["ok"] == 6
    assert all(one.verdict.proved for _, _, one in report.judged())
    assert report.conclusion == (
        "6 of 6 variables in effect in 1 of 1 process; "
        "/proc/PID/environ is overwritten in it, so it was not used"
    )


def test_a_conf_file_sets_what_the_environment_does_not() -> None:
    """ALGO came from the file and PROTO from the environment, as NCCL's log shows."""
    reading = two_gpus("conf", "conf-file", 1584)
    reading["processes"][0]["conf_files"] = [
        {
            "path": "/tmp/nccl.conf",
            "variables": {"NCCL_ALGO": "Tree", "NCCL_PROTO": "Simple", "PATH": "/opt"},
            "why": "",
        }
    ]

    report = judge(reading, {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}, engine=SGLANG)
    other = judge(reading, {"NCCL_ALGO": "Ring"}, engine=SGLANG)

    notes = {name: one.verdict.notes for _, name, one in report.judged()}
    assert report.ok is True
    assert notes == {
        "NCCL_ALGO": ("from a conf file: /tmp/nccl.conf sets it where nothing else does",),
        "NCCL_PROTO": ("/tmp/nccl.conf sets Simple; the environment is stronger",),
    }
    assert [(one.verdict.kind, one.verdict.why) for _, _, one in other.judged()] == [
        ("wrong", "NCCL took Tree")
    ]
    assert other.notes == ("/tmp/nccl.conf sets NCCL_PROTO=Simple, which nobody asked for",)
    assert report.to_dict()["conf_files"] == other.to_dict()["conf_files"]
    assert report.to_dict()["conf_files"] == {
        "/tmp/nccl.conf": {"NCCL_ALGO": "Tree", "NCCL_PROTO": "Simple"}
    }


def test_what_nccl_refused_is_wrong_though_it_was_read() -> None:
    """NTHREADS=500 and ALGO=Foo stand in the environment and in the log, and not in effect."""
    asked = {"NCCL_NTHREADS": "500", "NCCL_ALGO": "Foo", "NCCL_PROTO": "LL"}
    reading = readings.result(
        readings.process(
            1409,
            "sglang::scheduler_TP0",
            initial=readings.initial({}, "overwritten", 5000, 5000),
            live=readings.live(asked),
            nccl=readings.log("invalid", 1409),
        )
    )

    report = judge(reading, asked, engine=SGLANG)

    assert {name: (one.verdict.kind, one.verdict.why) for _, name, one in report.judged()} == {
        "NCCL_NTHREADS": (
            "wrong",
            "NCCL read 500 and refused it: Invalid NCCL_NTHREADS 500 (must be a multiple of 32)",
        ),
        "NCCL_ALGO": (
            "wrong",
            'NCCL read Foo and refused it: Unrecognized element token "Foo" when parsing "Foo"',
        ),
        "NCCL_PROTO": ("ok", ""),
    }


def test_one_rank_alone_is_not_proved_and_not_failed() -> None:
    """NCCL made no communicator, so its log is silent."""
    name, reading = readings.sglang_on_one_gpu()[0]
    reading["processes"][2]["nccl"] = readings.log("one-rank", 748)

    report = judge(reading, ASKED, engine=SGLANG)

    assert name == "results-default/baseline"
    scheduler = next(one for one in report.processes if one.pid == 748)
    for one in scheduler.variables.values():
        assert (one.verdict.kind, one.verdict.proved) == ("ok", False)
        assert one.verdict.asides[-1] == (
            "not proved by NCCL's log: no communicator of two or more ranks was made"
        )
