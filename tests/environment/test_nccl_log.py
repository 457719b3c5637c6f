"""The effective witness: what NCCL's own log says of each process, and what it does not."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.nccl_log import parse
from eagleops.remote.nccl_log_file import Log, LogReader, Writer, expand
from environment.programs import DATA

INFO = "vm:{pid}:{pid} [0] NCCL INFO {text}"


def log(name: str) -> list[str]:
    """A log that NCCL 2.28.9 wrote on real GPUs."""
    return (DATA / "nccl" / f"{name}.log").read_text().splitlines()


def said(text: str, pid: int = 7) -> str:
    """A line of NCCL's."""
    return INFO.format(pid=pid, text=text)


def test_a_real_log_names_what_nccl_took() -> None:
    """Two ranks on two GPUs, the variables set before the worker was spawned."""
    facts = parse(log("before-spawn"))[1006].to_json()

    assert {name: one["values"] for name, one in facts["read"].items()} == {
        "NCCL_P2P_LEVEL": ["SYS"],
        "NCCL_NVLS_ENABLE": ["0"],
        "NCCL_MAX_NCHANNELS": ["16"],
        "NCCL_BUFFSIZE": ["16777216"],
        "NCCL_NTHREADS": ["512"],
        "NCCL_PROTO": ["LL"],
        "NCCL_ALGO": ["Ring"],
    }
    assert {name for name, one in facts["read"].items() if one["number"]} == {
        "NCCL_NVLS_ENABLE",
        "NCCL_MAX_NCHANNELS",
        "NCCL_BUFFSIZE",
        "NCCL_NTHREADS",
    }
    assert facts["versions"] == ["2.28.9+cuda13.0"]
    assert (facts["comms_started"], facts["comms_complete"], facts["ranks"]) == ([2], [2], [0])
    assert (facts["coll_channels"], facts["transports"]) == (16, {"P2P/CUMEM": 16})
    assert facts["matrix"]["AllReduce"] == {"protocols": ["LL"], "algorithms": ["Ring"]}
    assert (facts["env_logged"], facts["refused"], facts["warnings"]) == (True, {}, [])


def test_a_real_refusal_is_told_from_a_reading() -> None:
    """NCCL names a value as read, and refuses it a line later."""
    facts = parse(log("invalid"))[1409].to_json()

    assert facts["read"]["NCCL_NTHREADS"]["values"] == ["500"]
    assert facts["refused"] == {
        "NCCL_NTHREADS": ["Invalid NCCL_NTHREADS 500 (must be a multiple of 32)"],
        "NCCL_ALGO": ['Unrecognized element token "Foo" when parsing "Foo"'],
    }
    assert (facts["comms_started"], facts["comms_complete"]) == ([2], [])


def test_a_conf_files_value_reads_as_set_by_environment() -> None:
    """NCCL folds the file into the environment; its log makes no difference."""
    facts = parse(log("conf-file"))[1584].to_json()

    assert facts["read"]["NCCL_ALGO"]["values"] == ["Tree"]
    assert facts["read"]["NCCL_PROTO"]["values"] == ["LL"]


def test_one_rank_alone_leaves_nccl_silent() -> None:
    """A real SGLang on one GPU: a log, and nothing in it of any variable."""
    facts = parse(log("one-rank"))[748].to_json()

    assert (facts["read"], facts["comms_started"]) == ({}, [])


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        (["Invalid NCCL_NTHREADS 1024 (maximum 512)."], {"NCCL_NTHREADS"}),
        (["Invalid value 9e99 for NCCL_BUFFSIZE, using default -2."], {"NCCL_BUFFSIZE"}),
        (
            [
                "NCCL_PROTO set by environment to LL",
                "NCCL_ALGO set by environment to ring,foo",
                'Unrecognized element token "foo" when parsing "ring,foo"',
            ],
            {"NCCL_ALGO"},
        ),
        (
            [
                "NCCL_PROTO set by environment to ^LL;x:LL",
                'Unrecognized prefix token "x" when parsing "x:LL"',
            ],
            {"NCCL_PROTO"},
        ),
        (
            ["No algorithm/protocol available for function AllReduce. NCCL_ALGO was set to X."],
            {"NCCL_ALGO"},
        ),
        (["User asked for a minimum of 99 channels, limiting to 64"], {"NCCL_MIN_NCHANNELS"}),
        (
            ["User asked for a maximum of 0 channels, setting it to 1"],
            {"NCCL_MAX_NCHANNELS"},
        ),
        (["Invalid config blocking attribute value 7"], set()),
    ],
)
def test_each_way_to_refuse_is_known(lines: list[str], refused: set[str]) -> None:
    """Whatever the wording, the variable that it is about is found."""
    facts = parse([said(line) for line in lines])[7]

    assert set(facts.refusals) == refused


def test_a_warning_with_a_time_a_file_and_a_function_is_read() -> None:
    """The wording of warnings: 2.26 added the time, 2.30 the function."""
    lines = [
        "",
        "[2026-11-30 06:39:56] vm:7:9 [0] graph/tuning.cc:104 NCCL WARN Unrecognized",
        "[2026-11-30 06:39:56] vm:7:9 [0] init.cc:12 (initTransports) NCCL WARN Something else",
        "\x1b[36m(Worker pid=7)\x1b[0m vm:7:9 [1] NCCL INFO NCCL_ALGO set by environment to Ring",
    ]

    facts = parse(lines)[7]

    assert facts.warnings == ["Unrecognized", "Something else"]
    assert facts.values == {"NCCL_ALGO": ["Ring"]}


def test_processes_that_write_into_one_log_are_told_apart() -> None:
    """Each line counts for the PID that stands in it."""
    lines = [
        said("NCCL_ALGO set by environment to Ring", 7),
        "INFO 11-30 engine started",
        said("NCCL_ALGO set by environment to Tree", 8),
    ]

    seen = {pid: facts.values for pid, facts in parse(lines).items()}

    assert seen == {7: {"NCCL_ALGO": ["Ring"]}, 8: {"NCCL_ALGO": ["Tree"]}}
    assert set(parse(lines, pids={8})) == {8}


def test_variables_logged_whatever_the_subsystem_do_not_show_that_env_is_on() -> None:
    """P2P_LEVEL is always logged, so it says nothing about the silence on others."""
    assert parse([said("NCCL_P2P_LEVEL set by environment to SYS")])[7].env_logged is False
    assert parse([said("NCCL_NTHREADS set by environment to 512.")])[7].env_logged is True


@given(st.text(max_size=300))
def test_any_text_is_a_log(text: str) -> None:
    """No line that an engine prints makes the parser fail."""
    for facts in parse([text, said(text), f"NCCL {text}", *text.splitlines()]).values():
        facts.to_json()


@given(st.lists(st.sampled_from(log("before-spawn") + log("invalid"))))
def test_a_log_in_any_order_and_cut_anywhere_is_read(lines: list[str]) -> None:
    """A log that is being written, or of which a part was lost, is no error."""
    for facts in parse(lines).values():
        facts.to_json()


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/tmp/nccl.%p.log", "/tmp/nccl.42.log"),
        ("/tmp/%h.%p", "/tmp/box.42"),
        ("/tmp/100%%.%q", "/tmp/100%.%q"),
        ("plain", "plain"),
    ],
)
def test_the_files_name_is_expanded_as_nccl_does(pattern: str, path: str) -> None:
    """%h up to the first full stop, %p, %%, and nothing else."""
    assert expand(pattern, 42, "box.example.com") == path


@given(st.text(), st.text())
def test_any_pattern_expands(pattern: str, host: str) -> None:
    """A file name may hold anything."""
    assert isinstance(expand(pattern, 1, host), str)


def writer(variables: dict[str, str] | None, started_s: float = 0.0) -> Writer:
    """This process as one whose NCCL log is looked for."""
    return Writer(os.getpid(), 7, started_s, variables)


def test_the_file_that_the_environment_names_is_found(tmp_path: Path) -> None:
    """As the process sees it: %p is its own PID, a relative path starts at its folder."""
    (tmp_path / "nccl.7.log").write_text(said("NCCL_ALGO set by environment to Ring"))
    named = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": f"{tmp_path}/nccl.%p.log"}
    relative = os.path.relpath(tmp_path / "nccl.7.log")

    found = LogReader().of_process(writer(named))
    near = LogReader().of_process(writer({**named, "NCCL_DEBUG_FILE": relative}))
    kept = LogReader(str(tmp_path)).of_process(writer(None))

    for each in (found, near, kept):
        assert each.facts.values == {"NCCL_ALGO": ["Ring"]}
    assert (found.path, near.path) == (f"{tmp_path}/nccl.7.log", relative)


def test_a_log_older_than_the_process_is_another_ones(tmp_path: Path) -> None:
    """A PID comes round again; what its former holder logged proves nothing."""
    (tmp_path / "nccl.7.log").write_text(said("NCCL_ALGO set by environment to Ring"))

    found = LogReader(str(tmp_path)).of_process(writer(None, time.time() + 60))

    assert found == Log(None, None, f"{tmp_path}/nccl.7.log is older than the process")


def test_a_long_log_is_read_at_both_ends(tmp_path: Path, monkeypatch) -> None:
    """What NCCL reads when it starts stands at the head, what it reads again at the end."""
    monkeypatch.setattr("eagleops.remote.nccl_log_file.HEAD_BYTES", 200)
    monkeypatch.setattr("eagleops.remote.nccl_log_file.TAIL_BYTES", 200)
    lines = [said("NCCL_ALGO set by environment to Ring")]
    lines += [said(f"AllReduce: opCount {number}") for number in range(500)]
    lines += [said("NCCL_ALGO set by environment to Tree")]
    (tmp_path / "nccl.7.log").write_text("\n".join(lines))

    found = LogReader(str(tmp_path)).of_process(writer(None))

    assert (found.facts.values, found.cut) == ({"NCCL_ALGO": ["Ring", "Tree"]}, True)


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({}, "NCCL_DEBUG is not set in it, so NCCL writes no log"),
        (
            {"NCCL_DEBUG": "warn", "NCCL_DEBUG_FILE": "/nowhere/%p"},
            "NCCL_DEBUG is warn, so NCCL's log names no variable",
        ),
        (
            {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": "/nowhere/%p"},
            "NCCL has logged nothing of it yet",
        ),
    ],
)
def test_where_there_is_no_log_the_reason_is_told(variables, why: str) -> None:
    """Silence has a cause, and most causes can be lifted."""
    found = LogReader().of_process(Writer(2**22 + 1, 7, 0.0, variables))

    assert (found.facts, found.why) == (None, why)


def test_a_pipe_in_the_files_place_is_not_waited_for(tmp_path: Path) -> None:
    """NCCL_DEBUG_FILE may name anything; opening it must not hang."""
    os.mkfifo(tmp_path / "nccl.7.log")

    found = LogReader(str(tmp_path)).of_process(writer(None))

    assert found.why == (
        f"{tmp_path}/nccl.7.log is no regular file, so NCCL's lines cannot be read again"
    )
