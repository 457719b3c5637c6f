"""Several clients at once, and clients that die: nothing that was recorded is lost."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from eagleops.errors import LedgerError
from eagleops.ledger import Ledger, place

CLIENTS = 8
RUNS_EACH = 25

WRITER = """
import sys
from eagleops.ledger import Header, Ledger, Run
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
with Ledger.open(path) as ledger:
    for number in range(count):
        header = Header(host="box", server=name, profile=name, engine="sglang")
        run_id = ledger.add(Run.begin(header, {"log": {"n": number}}))
        ledger.update(run_id, {"bench": {"tok_s": float(number)}})
        print(run_id)
"""


def test_eight_clients_at_once_lose_nothing(path: Path) -> None:
    """They all begin while there is no ledger yet; each run and each later fact is there."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, f"client-{n}", str(RUNS_EACH)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(CLIENTS)
    ]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    outputs = [writer.communicate(timeout=120)[0].split() for writer in writers]

    assert [writer.returncode for writer in writers] == [0] * CLIENTS
    numbers = [int(number) for output in outputs for number in output]
    assert sorted(numbers) == list(range(1, CLIENTS * RUNS_EACH + 1))
    with Ledger.open(path) as ledger:
        for client, output in enumerate(outputs):
            runs = [ledger.run(number) for number in output]
            assert {run.header.profile for run in runs} == {f"client-{client}"}
            assert [run.header.tok_s for run in runs] == [float(n) for n in range(RUNS_EACH)]
            assert [len(run.facts) for run in runs] == [2] * RUNS_EACH
    assert list(path.parent.glob("*.damaged-*")) == []


# One process that forks writers and kills each at a random moment: it is alone in its
# threads, which a test process need not be.
TORTURE = """
import json, os, random, signal, sys, time
from eagleops.ledger import Header, Ledger, Run
path, kills = sys.argv[1], int(sys.argv[2])
chance = random.Random(7)
told, facts = [], {"log": {"tail": ["x" * 3000]}, "bench": {"tok_s": 1.0}, "clock": {"n": 0}}
for kill in range(kills):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with Ledger.open(path) as ledger:
            while True:
                header = Header(host=str(kill), server="", profile="", engine="")
                number = ledger.add(Run.begin(header, facts))
                os.write(write, b"%d\\n" % number)
    os.close(write)
    with os.fdopen(read) as answers:
        # Every other one dies while it opens the ledger, or before its first run is told.
        first = answers.readline() if kill % 2 else ""
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        told += [int(line) for line in (first + answers.read()).splitlines()]
print(json.dumps(told))
"""


def test_a_writer_that_is_killed_leaves_every_finished_run(path: Path) -> None:
    """SIGKILL at 50 random moments: the ledger opens, and each run that was told is whole."""
    shown = subprocess.run(
        [sys.executable, "-c", TORTURE, path, "50"], check=True, capture_output=True, text=True
    )
    told = json.loads(shown.stdout)

    assert len(told) >= 25
    with Ledger.open(path) as ledger:
        assert ledger.notice == ""
        runs = [ledger.run(number) for number in range(1, ledger.count() + 1)]
    assert {run.id for run in runs} >= set(told)
    # A run of which nobody was told may be there, but none is there in part.
    assert {tuple(fact.part for fact in run.facts) for run in runs} == {("log", "bench", "clock")}
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert list(path.parent.glob("*.damaged-*")) == []


def test_threads_share_a_ledger(ledger: Ledger, make_run) -> None:
    """Measurements on several hosts record through one object."""
    threads = [
        threading.Thread(target=lambda: [ledger.add(make_run()) for _ in range(20)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(run.id for run in ledger.runs(limit=100)) == list(range(1, 81))


def test_a_reader_sees_whole_runs_while_others_write(ledger: Ledger, path: Path, make_run) -> None:
    """A view does not change while it is read: an export holds no half of a run."""
    ledger.add(make_run())
    with Ledger.open(path) as other, ledger._database.reading() as connection:
        before = connection.execute("SELECT count(*) FROM runs").fetchone()
        other.add(make_run())
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == before
    assert ledger.count() == 2


def test_a_ledger_that_is_held_too_long_is_told(path: Path, make_run) -> None:
    """A client that waits in vain says for how long, and how to find who holds it."""
    with Ledger.open(path) as ledger:
        ledger.add(make_run())
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as holder,
        Ledger.open(path, timeout_s=0.05) as ledger,
    ):
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError) as raised:
            ledger.add(make_run())
        assert str(raised.value) == (
            f"{path}: another client has kept the ledger for 0.05 s\n"
            "See who holds it: fuser -v FILE; then try again."
        )
        holder.execute("ROLLBACK")
        assert ledger.add(make_run()) == 2


def test_on_a_network_file_system_there_is_no_log_in_shared_memory(
    path: Path, make_run, monkeypatch
) -> None:
    """Clients on several machines share no memory: the ledger is kept with a plain journal."""
    monkeypatch.setattr(place, "is_remote", lambda _folder: True)
    with Ledger.open(path) as ledger, Ledger.open(path) as other:
        ledger.add(make_run())
        other.add(make_run())
        assert ledger.count() == 2
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert not Path(f"{path}-wal").exists()


def test_a_commit_of_another_client_is_no_damage(path: Path, make_run, monkeypatch) -> None:
    """In the middle of it the file may be shorter than its header says."""
    monkeypatch.setattr(place, "is_remote", lambda _folder: True)
    with Ledger.open(path) as ledger:
        ledger.add(make_run())
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)
    journal = Path(f"{path}-journal")

    assert place.damage(path).startswith("the file is cut off")
    journal.write_bytes(b"being written")
    assert place.damage(path) == ""
