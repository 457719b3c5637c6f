"""A damaged ledger is set aside, told of, and never overwritten."""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagleops.errors import LedgerDamaged, LedgerError
from eagleops.ledger import Ledger, place
from parts import needs

PAGE_BYTES = 4096
LEAF_OF_A_TABLE = 13  # https://www.sqlite.org/fileformat2.html#b_tree_pages


def fill(path: Path, make_run, runs: int = 40) -> bytes:
    """A ledger of some pages; its bytes."""
    with Ledger.open(path) as ledger:
        for number in range(runs):
            ledger.add(make_run(log={"tail": [os.urandom(200).hex()], "n": number}))
    return path.read_bytes()


def aside(path: Path) -> Path:
    """The one file that was set aside."""
    (found,) = path.parent.glob("ledger.db.damaged-*Z")
    return found


def random_bytes(data: bytes) -> bytes:
    """Other bytes, as many."""
    return random.Random(len(data)).randbytes(len(data))


AT_ONCE = {
    "cut in the middle": (lambda d: d[: len(d) // 2], "the file is cut off: "),
    "cut by one byte": (lambda d: d[:-1], "the file is cut off: "),
    "cut in its header": (lambda d: d[:50], "the file is no SQLite database"),
    "random bytes": (random_bytes, "the file is no SQLite database"),
    "zero bytes": (lambda d: bytes(len(d)), "the file is no SQLite database"),
    "empty": (lambda _: b"", "the file is empty, which a ledger never is"),
    "a text": (lambda _: b"hello\n" * 100, "the file is no SQLite database"),
    "a broken root": (lambda d: d[:100] + bytes(3996) + d[4096:], "database disk image is"),
}


@pytest.mark.parametrize("kind", AT_ONCE)
def test_what_is_damaged_is_set_aside(path: Path, make_run, kind: str) -> None:
    """A new ledger is begun, the old file keeps every byte, and the notice tells where."""
    spoil, reason = AT_ONCE[kind]
    damaged = spoil(fill(path, make_run))
    path.write_bytes(damaged)

    with Ledger.open(path) as ledger:
        assert ledger.count() == 0
        assert ledger.add(make_run()) == 1
        kept = aside(path)
        assert ledger.notice.startswith(f"{path} was damaged ({reason}")
        assert ledger.notice.endswith(
            f"it is now {kept.name}, and a new ledger was begun. What it held is in {kept}; much "
            f"of it can often be saved: sqlite3 {kept} .recover | sqlite3 saved.db"
        )
    assert kept.read_bytes() == damaged
    with Ledger.open(path) as again:
        assert (again.notice, again.count()) == ("", 1)


def test_damage_in_the_middle_is_set_aside_when_it_is_met(path: Path, make_run) -> None:
    """Pages that nobody reads at first: the command that meets them says so, once."""
    data = bytearray(fill(path, make_run, 200))
    leaves = [at for at in range(0, len(data), PAGE_BYTES) if data[at] == LEAF_OF_A_TABLE]
    middle = leaves[len(leaves) // 2]
    data[middle : middle + PAGE_BYTES] = random_bytes(bytes(PAGE_BYTES))
    path.write_bytes(bytes(data))

    with Ledger.open(path) as ledger, pytest.raises(LedgerDamaged) as raised:
        [ledger.run(number) for number in range(1, 201)]

    kept = aside(path)
    assert raised.value.set_aside == str(kept)
    assert re.fullmatch(
        rf"{path}: the ledger is damaged \(.*\): it is now {kept.name}; the next command begins "
        rf"a new one\nWhat it held is in .*",
        str(raised.value),
    )
    with Ledger.open(path) as ledger:
        assert ledger.add(make_run()) == 1


def test_a_part_that_cannot_be_read_costs_no_other(path: Path, make_run) -> None:
    """Damage inside of one body: the error names run and part, every other run is there."""
    fill(path, make_run, 3)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE bodies SET json_deflated = x'00' WHERE id ="
            " (SELECT body_id FROM facts WHERE run_id = 2 AND part = 'log')"
        )

    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError) as raised:
            ledger.run(2)
        assert str(raised.value).startswith("run 2: its log cannot be read: ")
        assert [run.id for run in ledger.runs()] == [3, 2, 1]
        assert ledger.run(3).part("log")["n"] == 2


def test_a_client_follows_when_another_has_set_the_file_aside(path: Path, make_run) -> None:
    """What it records afterwards is in the file that everybody reads."""
    with Ledger.open(path) as ledger:
        ledger.add(make_run())
        path.rename(path.with_name("elsewhere"))
        with Ledger.open(path) as other:
            other.add(make_run(profile="of the other"))

        assert ledger.add(make_run(profile="of this one")) == 2
        assert [run.profile for run in ledger.runs()] == ["of this one", "of the other"]


def test_a_log_without_its_database_is_not_replayed_into_a_new_one(path: Path, make_run) -> None:
    """Of a ledger whose file was deleted the write-ahead log may be left: it is set aside."""
    ledger = Ledger.open(path)
    ledger.add(make_run())
    copy = path.with_name("copy-wal")
    shutil.copy(f"{path}-wal", copy)
    ledger.close()
    path.unlink()
    log = Path(f"{path}-wal")
    copy.rename(log)
    data = log.read_bytes()

    with Ledger.open(path) as fresh:
        assert fresh.count() == 0
        fresh.add(make_run())
    (kept,) = path.parent.glob("ledger.db.damaged-*-wal")
    assert kept.read_bytes() == data


def test_a_folder_is_no_ledger(path: Path) -> None:
    """A folder of that name is refused, with what to write instead."""
    path.mkdir()

    with pytest.raises(LedgerError) as raised:
        Ledger.open(path)

    assert str(raised.value) == (
        f"{path}: is a folder, a ledger is a file\nName a file in it: ledger.db."
    )


def test_a_place_where_nothing_can_be_made_is_told(tmp_path: Path) -> None:
    """A file in the way of the folder, or a folder's: the error says what, and the way out."""
    (tmp_path / "file").write_text("")

    with pytest.raises(LedgerError) as near:
        Ledger.open(tmp_path / "file" / "ledger.db")
    with pytest.raises(LedgerError) as far:
        Ledger.open(tmp_path / "file" / "folder" / "ledger.db")

    assert str(near.value) == (
        f"{tmp_path}/file/ledger.db: {tmp_path}/file is no folder\nName another place as `ledger:`."
    )
    assert str(far.value) == (
        f"{tmp_path}/file/folder/ledger.db: the ledger cannot be made: Not a directory\n"
        "Name another place as `ledger:` in hosts.yaml, or set XDG_DATA_HOME."
    )


READ = """
import os, sys
from eagleops.errors import EagleError
from eagleops.ledger import Header, Ledger, Run
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with Ledger.open(sys.argv[1]) as ledger:
    print(ledger.count(), ledger.run(1).header.profile)
    try:
        ledger.add(Run.begin(Header(host="", server="", profile="", engine=""), {}))
    except EagleError as error:
        print(error)
"""


@pytest.mark.parametrize("whose", ["file", "folder"])
def test_a_read_only_ledger_can_be_read(path: Path, make_run, whose: str) -> None:
    """Another user looks at the runs; that nothing can be recorded is told in so many words."""
    needs.root("becoming a user who may not write")
    fill(path, make_run, 3)
    # The whole way to the file must be open to that user.
    public = Path("/var/tmp") / f"eagleops-test-{os.getpid()}-{whose}"
    public.mkdir(mode=0o777)
    try:
        public.chmod(0o777 if whose == "file" else 0o755)
        copy = public / "ledger.db"
        shutil.copy(path, copy)
        copy.chmod(0o644)
        shown = subprocess.run(
            [sys.executable, "-c", READ, copy],
            check=False,
            capture_output=True,
            text=True,
        )
    finally:
        shutil.rmtree(public)

    assert shown.stderr == ""
    assert shown.stdout == (
        f"3 baseline\n{copy}: the ledger is read-only: nothing can be recorded\n"
        "Make the file and its folder writable, or name another as `ledger:`.\n"
    )
    assert shown.returncode == 0


def endless_runs(ledger: Ledger, make_run) -> Iterator[int]:
    """Records one run after another."""
    while True:
        yield ledger.add(make_run(log={"tail": [os.urandom(10_000).hex()]}))


def test_a_full_disk_costs_the_new_run_alone(small_disk: Path, make_run) -> None:
    """The error says so; every run before is whole, and with room the next one is recorded."""
    path = small_disk / "ledger.db"
    padding = small_disk / "padding"
    padding.write_bytes(bytes(300_000))
    numbers = []
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError) as raised:
            numbers.extend(endless_runs(ledger, make_run))
        recorded = len(numbers)

        assert str(raised.value).startswith(f"{path}: the ledger cannot be written: ")
        assert str(raised.value).endswith(
            "What it held is whole. Make room on the disk, then try again."
        )
        assert recorded > 0
        assert ledger.count() == recorded
        padding.unlink()
        assert ledger.add(make_run()) == recorded + 1
    with Ledger.open(path) as ledger:
        assert [ledger.run(number).id for number in range(1, recorded + 2)][-1] == recorded + 1


def test_a_disk_that_is_full_at_once_is_told(small_disk: Path) -> None:
    """Not even an empty ledger fits: the error says so and leaves no half of one."""
    padding = small_disk / "padding"
    padding.write_bytes(bytes(1024 * 1024 - 4096))

    with pytest.raises(LedgerError, match="the ledger cannot be made: "):
        Ledger.open(small_disk / "ledger.db")

    assert not (small_disk / "ledger.db").exists()
    padding.unlink()
    Ledger.open(small_disk / "ledger.db").close()


LIMITED = """
import sys
from eagleops.errors import LedgerError
from eagleops.ledger import Header, Ledger, Run
import os
with Ledger.open(sys.argv[1]) as ledger:
    try:
        while True:
            run = Run.begin(Header(host="", server="", profile="", engine=""),
                            {"log": {"tail": [os.urandom(10_000).hex()]}})
            print(ledger.add(run), flush=True)
    except LedgerError as error:
        print(str(error).splitlines()[0])
"""


def test_a_limit_on_file_size_costs_the_new_run_alone(path: Path, make_run) -> None:
    """A process that may write no larger file loses none of what it had recorded."""
    fill(path, make_run, 3)
    most = 400_000
    shown = subprocess.run(
        [sys.executable, "-c", LIMITED, path],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )

    *numbers, told = shown.stdout.splitlines()
    assert told.startswith(f"{path}: the ledger cannot be written: ")
    with Ledger.open(path) as ledger:
        assert ledger.count() == int(numbers[-1])
        assert ledger.notice == ""


def test_a_network_file_system_is_known_by_its_mount() -> None:
    """The innermost mount decides: shared memory, which a log needs, ends at one machine."""
    mounts = """\
21 1 254:1 / / rw,relatime - ext4 /dev/root rw
30 21 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 0:41 / /home/local\\040disk rw - xfs /dev/sdb rw
"""

    assert place.is_remote(Path("/home/ann"), mounts)
    assert not place.is_remote(Path("/home/local disk/ann"), mounts)
    assert not place.is_remote(Path("/homes"), mounts)


@pytest.mark.parametrize(
    ("words", "corrupt"),
    [
        ("database disk image is malformed", True),
        ("file is not a database", True),
        ("malformed database schema (runs)", True),
        ("database is locked", False),
        ("disk I/O error", False),
        ("unable to open database file", False),
    ],
)
def test_damage_is_known_by_sqlites_words_where_there_is_no_number(
    words: str, corrupt: bool
) -> None:
    """Python 3.10 hands on no error code; a file that is merely busy is never set aside."""
    assert place.is_corrupt(sqlite3.OperationalError(words)) is corrupt
