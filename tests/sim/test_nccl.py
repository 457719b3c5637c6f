"""The stand-in NCCL: what it reads, refuses and logs, held against the real one's logs."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.sim.nccl import communicator, variables
from eagleops.sim.nccl.communicator import Rank, first_all_reduce
from eagleops.sim.nccl.log import file_name, subsystems
from eagleops.sim.nccl.variables import NcclError, number, parse_choice
from sim.simulated import DATA, SimServer

REAL = DATA / "nccl"
TUNING = {
    "NCCL_PROTO": "LL",
    "NCCL_ALGO": "Ring",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MAX_NCHANNELS": "16",
    "NCCL_BUFFSIZE": "16777216",
    "NCCL_NTHREADS": "512",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING",
}
Read = Callable[..., list[str]]


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """``logged(NCCL_ALGO="Tree")``: the log of one rank, its lines as the real one's begin."""
    for name in [name for name in os.environ if name.startswith("NCCL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(variables, "SYSTEM_FILE", tmp_path / "etc-nccl.conf")
    file = tmp_path / "nccl.log"

    def run(rank: int = 0, ranks: int = 2, **settings: str | None) -> list[str]:
        for name, value in {**TUNING, "NCCL_DEBUG_FILE": str(file), **settings}.items():
            monkeypatch.setenv(name, value or "")
            if value is None:
                monkeypatch.delenv(name)
        first_all_reduce(Rank(rank, ranks, rank, "00000000:31:00.0", 0x78EB14FDB7CDDB73))
        return file.read_text().splitlines() if file.exists() else []

    return run


def told(lines: list[str]) -> list[str]:
    """What lines tell, with what differs between machines taken out."""
    texts = [re.sub(r"^\S+:\d+:\d+ \[\d+\] NCCL INFO ", "", line) for line in lines]
    return [re.sub(r"0x[0-9a-f]+|busId [0-9a-f]+", "#", text) for text in texts]


def test_every_line_is_the_real_ones_or_plainly_pcie(logged: Read) -> None:
    """Same words and order, but for what NVLink had to say there."""
    ours = [line for line in told(logged()) if line]
    theirs = [line for line in told((REAL / "whole.log").read_text().splitlines()) if line]

    shared = [line for line in ours if line in theirs]
    assert shared == [line for line in theirs if line in shared]
    different = [line for line in ours if line not in theirs]
    pcie = re.compile(
        r"NCCL version 2\.28\.9\+cuda13\.0 \(simulated\)|NET/Socket : Using \[0\]lo|"
        r"Channel 0[0-3]/04 : 0 1|P2P Chunksize|threadThresholds|4 coll channels|Init timings|"
        r"Channel 0[23]/0 : 0\[0\] -> 1\[1\] via P2P/CUMEM|"
        r"AllReduce: 14336 Bytes -> Algo RING proto LL"
    )
    assert [line for line in different if not pcie.match(line)] == []
    assert len(shared) >= 35


def test_the_prefix_has_host_process_thread_and_device(logged: Read) -> None:
    """``HOST:PID:TID [DEVICE] NCCL INFO``: the PID joins a line to its worker."""
    lines = logged(rank=1)

    own = [line for line in lines if "NCCL INFO" in line]
    assert all(re.match(rf"[\w-]+:{os.getpid()}:\d+ \[1\] NCCL INFO ", line) for line in own)
    assert not any("NCCL version" in line for line in own)


def test_integers_are_logged_as_they_were_parsed(logged: Read) -> None:
    """With a full stop; strings raw and without one."""
    text = "\n".join(told(logged(NCCL_BUFFSIZE="16M")))

    assert "NCCL_BUFFSIZE set by environment to 16." in text
    assert "NCCL_ALGO set by environment to Ring\n" in text
    assert "NCCL_P2P_LEVEL set by environment to SYS\n" in text


@pytest.mark.parametrize(
    ("threads", "complaint"),
    [
        ("500", "Invalid NCCL_NTHREADS 500 (must be a multiple of 32)"),
        ("1024", "Invalid NCCL_NTHREADS 1024 (maximum 512)."),
        ("32", "Invalid NCCL_NTHREADS 32 (minimum 64)."),
    ],
)
def test_bad_thread_counts_are_read_and_then_refused(
    logged: Read, threads: str, complaint: str
) -> None:
    """``set by environment`` comes first and proves nothing."""
    lines = told(logged(NCCL_NTHREADS=threads))

    at = lines.index(f"NCCL_NTHREADS set by environment to {threads}.")
    assert lines[at + 1 : at + 4] == [complaint] * 3


def test_a_bad_algorithm_fails_as_the_real_one(logged: Read, tmp_path: Path) -> None:
    """The warning with its time and place, and ncclInvalidUsage."""
    real = [
        line for line in (REAL / "invalid-values.log").read_text().splitlines() if "WARN" in line
    ]

    with pytest.raises(NcclError) as failed:
        logged(NCCL_ALGO="Foo")

    assert failed.value.result == "ncclInvalidUsage"
    text = (tmp_path / "nccl.log").read_text()
    (warning,) = [line for line in text.splitlines() if "WARN" in line]
    assert re.sub(r"\[.*?\] \S+ ", "", warning) == re.sub(r"\[.*?\] \S+ ", "", real[0])
    assert re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \S+:\d+:\d+ \[0\] graph/tuning", warning)
    assert f"\n\n{warning}\n" in text


def test_an_algorithm_that_pcie_has_not_fails_at_the_first_collective(logged: Read) -> None:
    """Known, and of no use here: NCCL falls back to nothing since 2.24."""
    with pytest.raises(NcclError, match="No algorithm/protocol available") as failed:
        logged(NCCL_ALGO="NVLS")

    assert "NCCL_ALGO was set to NVLS." in failed.value.last_error


def test_a_conf_file_is_folded_into_the_environment(logged: Read, tmp_path: Path) -> None:
    """It sets what the environment does not; the log says ``set by environment`` of both."""
    conf = tmp_path / "nccl.conf"
    conf.write_text("# a comment\nNCCL_ALGO=Tree\nNCCL_PROTO=Simple\nno assignment\n")

    lines = told(logged(NCCL_CONF_FILE=str(conf), NCCL_ALGO=None))

    real = told((REAL / "conf-file.log").read_text().splitlines())
    both = ["NCCL_PROTO set by environment to LL", "NCCL_ALGO set by environment to Tree"]
    assert [line for line in lines if line in both] == both
    assert [line for line in real if line in both] == both
    assert os.environ["NCCL_ALGO"] == "Tree"


def test_precedence_is_environment_then_named_file_then_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As setenv without overwriting makes it."""
    (tmp_path / "named").write_text("NCCL_A=named\nNCCL_B=named\nNCCL_C=named\n")
    (tmp_path / "system").write_text("NCCL_B=system\nNCCL_D=system\n")
    monkeypatch.setattr(variables, "SYSTEM_FILE", tmp_path / "system")
    monkeypatch.setenv("NCCL_CONF_FILE", str(tmp_path / "named"))
    monkeypatch.setenv("NCCL_A", "environment")
    for name in ("NCCL_B", "NCCL_C", "NCCL_D"):
        monkeypatch.setenv(name, "to be removed again")
        monkeypatch.delenv(name)

    variables.fold_in_files()

    values = [os.environ.pop(f"NCCL_{name}") for name in "BCD"]
    assert (os.environ["NCCL_A"], *values) == ("environment", "named", "named", "system")


@pytest.mark.parametrize(
    ("settings", "silent"),
    [
        ({"NCCL_DEBUG": "WARN"}, True),
        ({"NCCL_DEBUG": "info"}, False),
        ({"NCCL_DEBUG": "LOUD"}, True),
        ({"NCCL_DEBUG_SUBSYS": "COLL"}, True),
        ({"NCCL_DEBUG_SUBSYS": "^ENV"}, True),
        ({"NCCL_DEBUG_SUBSYS": "all"}, False),
    ],
)
def test_subsystems_and_level_decide_what_is_heard(
    logged: Read, settings: dict[str, str], silent: bool
) -> None:
    """A user's NCCL_DEBUG_SUBSYS=COLL hides the proof."""
    lines = told(logged(**settings))

    assert ("NCCL_ALGO set by environment to Ring" not in lines) == silent


def test_a_level_word_in_lower_case_is_ignored_without_a_word(logged: Read) -> None:
    """And the GPUs talk through shared memory then."""
    text = "\n".join(logged(NCCL_P2P_LEVEL="sys"))

    assert "NCCL_P2P_LEVEL" not in text
    assert "via SHM/direct/direct" in text


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        ("4M", 4),
        ("abc", 0),
        ("1e6", 1),
        ("010", 8),
        ("0x100000", 1 << 20),
        (" -3", -3),
        ("9" * 30, None),
    ],
)
def test_numbers_are_strtolls(value: str, parsed: int | None) -> None:
    """Base 0, no check of the end."""
    assert number(value) == parsed


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["", "M", " x"]))
def test_any_decimal_number_is_read_whole(value: int, tail: str) -> None:
    """Whatever stands behind it."""
    assert number(f"{value}{tail}") == value


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("ring", {"Ring"}),
        ("^Tree", {"Ring", "NVLS"}),
        ("Tree,NVLS", {"Tree", "NVLS"}),
        ("allreduce:tree;broadcast:ring", {"Tree"}),
        ("broadcast:ring", {"Tree", "Ring", "NVLS"}),
    ],
)
def test_lists_choose_or_exclude(value: str, left: set[str]) -> None:
    """In any case, with ``^``, and per function."""
    assert parse_choice(value, ("Tree", "Ring", "NVLS"), ("allreduce", "broadcast")) == left


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
def test_a_list_is_taken_or_refused(value: str) -> None:
    """Never ignored in silence, as older NCCLs did: only known elements come back."""
    known = ("Tree", "Ring")
    with contextlib.suppress(NcclError):
        assert parse_choice(value, known, ("allreduce",)) <= set(known)


def test_the_files_name_is_put_together() -> None:
    """%h, %p and %%; any other stays."""
    assert file_name("/r/%h.%p.%%.%x", "box", 7) == "/r/box.7.%.%x"


def test_default_subsystems_tell_of_the_environment() -> None:
    """Unset is better than a list without ENV."""
    assert "ENV" in subsystems(None)
    assert "ENV" not in subsystems("COLL,INIT")


def test_each_worker_of_a_server_has_a_log_of_its_own(
    launch: Callable[..., SimServer], tmp_path: Path
) -> None:
    """``%p`` in the name: one file a worker, and none of any other process."""
    pattern = f"{tmp_path}/nccl.%p.log"
    server = launch("--tp-size", "2", env={**TUNING, "NCCL_DEBUG_FILE": pattern})

    workers = [server.worker(f"sglang::scheduler_TP{rank}") for rank in (0, 1)]

    assert sorted(path.name for path in tmp_path.glob("nccl.*.log")) == sorted(
        f"nccl.{pid}.log" for pid in workers
    )
    for pid in workers:
        text = (tmp_path / f"nccl.{pid}.log").read_text()
        assert "NCCL_ALGO set by environment to Ring\n" in text
        assert "NCCL_CUMEM_ENABLE set by environment to 0.\n" in text
        assert "- Init COMPLETE\n" in text


def test_one_rank_makes_no_communicator(launch: Callable[..., SimServer], tmp_path: Path) -> None:
    """The witness is silent then, not negative."""
    launch(env={**TUNING, "NCCL_DEBUG_FILE": f"{tmp_path}/nccl.%p.log"})

    assert list(tmp_path.glob("nccl.*.log")) == []


def test_without_a_file_the_lines_are_in_the_servers_log(
    launch: Callable[..., SimServer],
) -> None:
    """On stdout."""
    server = launch("--tp-size", "2", env={"NCCL_DEBUG": "INFO", "NCCL_ALGO": "Tree"})

    assert server.log.count("NCCL_ALGO set by environment to Tree") == 2


def test_a_bad_algorithm_kills_a_server(launch: Callable[..., SimServer]) -> None:
    """PyTorch's exception with NCCL's own sentence in it."""
    server = launch("--tp-size", "2", ready=False, env={"NCCL_ALGO": "Foo"})

    assert server.wait_ended() == -9
    assert "torch.distributed.DistBackendError: NCCL error in: " in server.log
    assert 'Unrecognized element token "Foo" when parsing "Foo"' in server.log


def test_the_version_is_that_of_the_facts() -> None:
    """What is logged and what SGLang says are one."""
    assert communicator.VERSION == "2.28.9"
