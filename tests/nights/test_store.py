"""Nights are kept, found again, and never lost to what lies beside them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import attrs
import pytest

from eagleops.errors import NightsError
from eagleops.ledger import default_path
from eagleops.nights.finding import Finding
from eagleops.nights.store import NightStore
from parts import needs

SUITE = "default"


def kept(store: NightStore) -> list[str]:
    """The names of the nights' files."""
    return sorted(path.name for path in store.folder_of(SUITE).glob("*.json"))


def test_a_night_is_read_as_it_was_written(store, make_night) -> None:
    """Findings, facts, journal and what was told of it, all."""
    night = make_night(
        0,
        {("llm", "disk"): "fail", ("llm", "xid"): "skip"},
        asked={"llm": ("disk", "xid")},
        facts={"llm": {"machine": {"kernel": "6.8", "swap_mib": None}}},
        journal={"llm": {"restore": {"server": "baseline"}}},
        told={"hooks.example.com": {"ok": True, "attempts": 1}},
        client="desk",
    )
    finding = Finding("disk", "llm", "fail", "12 MiB", 12.5, "MiB", 10240, 42, {"path": "/var"})
    night = attrs.evolve(night, findings=(*night.findings, finding))

    path = store.write(night)

    assert store.history(SUITE) == (night,)
    assert path.name == "20261001T023000.000000Z-00000000.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, store.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_it_lies_beside_the_ledger(tmp_path: Path, monkeypatch) -> None:
    """Beside the one that hosts.yaml names, or the default one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert NightStore.beside(Path("/srv/eagle/ledger.db")).folder == Path("/srv/eagle/nights")
    assert NightStore.beside().folder == default_path().parent / "nights"


def test_a_later_write_takes_the_place_of_the_earlier(store, make_night) -> None:
    """A night is written after every check, and stays one file."""
    night = make_night(0, {("llm", "disk"): "pass"}, ended_utc=None, outcome="running")
    store.write(attrs.evolve(night, findings=()))
    store.write(night)

    assert len(kept(store)) == 1
    assert store.unfinished(SUITE, 3600, night.began_utc) == night
    assert store.history(SUITE) == ()


def test_history_has_the_latest_finished_nights_the_oldest_first(store, make_night) -> None:
    """However they were written: a clock that was set back puts a night where its time is."""
    nights = [make_night(day, {("llm", "disk"): "pass"}) for day in range(6)]
    for day in (3, 0, 5, 1, 4, 2):
        store.write(nights[day])
    store.write(make_night(7, {}, ended_utc=None, outcome="running"))

    assert store.history(SUITE) == tuple(nights)
    assert store.history(SUITE, 2) == tuple(nights[4:])
    assert store.history(SUITE, 0) == ()
    assert store.history("another") == ()


def test_history_can_leave_out_what_is_most_of_a_night(store, make_night) -> None:
    """Packages of 400 nights are a lot, and no list of faults needs them."""
    night = make_night(0, {("llm", "disk"): "pass"}, facts={"llm": {"packages": {}}}, journal={})
    store.write(night)

    (light,) = store.history(SUITE, facts=False)

    assert (light.facts, light.journal) == ({}, {})
    assert light.findings == night.findings


def test_two_nights_of_one_moment_are_two(store, make_night) -> None:
    """Two clients that share a home may begin at once; their names decide the order."""
    one = make_night(0, {}, uuid="bbbbbbbb1")
    two = make_night(0, {}, uuid="aaaaaaaa1")
    store.write(one)
    store.write(two)

    assert store.history(SUITE) == (two, one)


@pytest.mark.parametrize("suite", ["a/b", "..", ".", ".hidden", "ä b", "CON", "x" * 64])
def test_a_suite_has_a_folder_of_its_own_whatever_its_name(store, make_night, suite) -> None:
    """No name leads out of the store."""
    night = make_night(0, {}, suite=suite)
    path = store.write(night)

    assert path.parent.parent == store.folder
    assert path.resolve().is_relative_to(store.folder.resolve())
    assert store.history(suite) == (night,)
    assert store.history(SUITE) == ()


@pytest.mark.parametrize(
    ("after_s", "within_s", "is_taken_up"),
    [(0, 60, True), (60, 60, True), (61, 60, False), (-50, 60, True), (-61, 60, False)],
)
def test_a_night_that_was_cut_off_can_be_taken_up_for_a_while(
    store, make_night, after_s, within_s, is_taken_up
) -> None:
    """Also by a clock that was set back a little meanwhile."""
    running = {"ended_utc": None, "outcome": "running"}
    night = make_night(1, {}, **running)
    store.write(make_night(0, {}))
    store.write(night)
    now = make_night(1 + after_s / 86400, {}).began_utc

    assert store.unfinished(SUITE, within_s, now) == (night if is_taken_up else None)


def test_a_night_that_was_given_up_is_not_taken_up(store, make_night) -> None:
    """A whole one came after it: its findings are old."""
    store.write(make_night(0, {}, ended_utc=None, outcome="running"))
    whole = make_night(0.01, {})
    store.write(whole)

    assert store.unfinished(SUITE, 86400, whole.began_utc) is None


def test_what_no_file_may_hold_is_left_out(store, make_night) -> None:
    """Values of secret names, a secret that is known, numbers that JSON lacks; names stay."""
    finding = Finding(
        "command:token",
        "keyhost",
        "fail",
        "exit 1: HF_TOKEN=hf_abcdefgh refused at https://hooks.example.com/T0/s3cr3tpath",
        float("nan"),
        facts={"env": {"API_KEY": "abc123456"}, "stdout": "abc123456 s3cr3tpath"},
    )
    facts = {"keyhost": {"nccl_conf": ["NCCL_DEBUG=INFO"], "env": {"HF_TOKEN": "hf_abcdefgh"}}}
    night = attrs.evolve(make_night(0, {}, facts=facts), findings=(finding,))

    text = store.write(night, secrets=["s3cr3tpath"]).read_text()

    for secret in ("hf_abcdefgh", "abc123456", "s3cr3tpath", "NaN"):
        assert secret not in text
    (read,) = store.history(SUITE)[0].findings
    assert (read.id, read.host, read.value) == ("command:token", "keyhost", None)
    assert "exit 1: HF_TOKEN=<redacted> refused" in read.message
    assert "NCCL_DEBUG=INFO" in text


def test_any_text_of_a_machine_can_be_kept(store, make_night) -> None:
    """Stray bytes, control characters and every script."""
    message = "stray \udcff byte, \x1b[31mred, nul \0, 日本語, \U0001f980"
    night = attrs.evolve(make_night(0, {}), findings=(Finding("disk", "llm", "warn", message),))
    store.write(night)

    assert store.history(SUITE)[0].findings[0].message == message


FINDING = {"id": "disk", "host": "llm", "state": "warn", "message": "full"}
WHOLE = {
    "suite": "s",
    "uuid": "u",
    "began_utc": "2026-10-01T00:00:00Z",
    "ended_utc": None,
    "findings": [FINDING],
    "facts": {},
}
NO_NIGHTS = {
    "empty": b"",
    "cut off": b'{"version":1,"suite":"default","uuid":"x","began_utc":"2026-',
    "zero bytes": bytes(300),
    "no text": b"\xff\xfe\x00garbage",
    "a list": b"[]",
    "another document": b'{"name": "package", "version": "1.0.0"}',
    "a night without a time": (
        b'{"suite":"s","uuid":"u","began_utc":"noon","findings":[],"facts":{}}'
    ),
    "a finding that is none": (
        b'{"suite":"s","uuid":"u","began_utc":"2026-10-01T00:00:00Z","findings":[7],"facts":{}}'
    ),
    "a finding without a host": (
        b'{"suite":"s","uuid":"u","began_utc":"2026-10-01T00:00:00Z","findings":[{"id":"disk"}],'
        b'"facts":{}}'
    ),
    "nested too deeply": b"[" * 100_000,
    **{
        f"{name} of another kind": json.dumps({**WHOLE, name: value}).encode()
        for name, value in {
            "facts": {"llm": "text"},
            "told": {"slack": "sent"},
            "journal": {"llm": [1]},
            "asked": {"llm": None},
            "hosts": "llm",
            "ended_utc": "soon",
            "began_utc": "0001-01-01T00:00:00+14:00",
        }.items()
    },
    **{
        f"a finding whose {name} is of another kind": json.dumps(
            {**WHOLE, "findings": [{**FINDING, name: value}]}
        ).encode()
        for name, value in {
            "id": None,
            "host": ["llm"],
            "state": "bad",
            "message": 7,
            "unit": None,
            "facts": None,
        }.items()
    },
}


@pytest.mark.parametrize("kind", NO_NIGHTS)
def test_a_file_that_is_no_night_is_set_aside(store, make_night, kind) -> None:
    """Every other night is there, the file keeps its bytes under another name, it is told once."""
    nights = [make_night(day, {("llm", "disk"): "fail"}) for day in range(3)]
    paths = [store.write(night) for night in nights]
    paths[1].write_bytes(NO_NIGHTS[kind])

    assert store.history(SUITE) == (nights[0], nights[2])

    (aside,) = paths[1].parent.glob("*.damaged-*")
    assert aside.read_bytes() == NO_NIGHTS[kind]
    assert store.notice.startswith(f"{paths[1]} is no night (")
    assert store.notice.endswith(f"it is now {aside.name}. The others are whole.")
    again = NightStore(store.folder)
    assert len(again.history(SUITE)) == 2
    assert again.notice == ""


def test_a_copy_of_a_night_is_set_aside(store, make_night) -> None:
    """Somebody's backup must not make one night into two."""
    night = make_night(0, {("llm", "xid"): "fail"})
    path = store.write(night)
    copy = path.with_name(f"{path.stem} (copy).json")
    copy.write_bytes(path.read_bytes())

    assert store.history(SUITE) == (night,)
    assert "it is not named as its night is" in store.notice
    assert not copy.exists()


def test_files_of_other_kinds_are_left_alone(store, make_night) -> None:
    """A README, an editor's file, a report, what was set aside: nothing is said of them."""
    night = make_night(0, {})
    folder = store.write(night).parent
    others = [folder / name for name in ("README", ".x.json.swp", "a.json.damaged-1", "lock")]
    others += [folder / "default-latest.json", folder / "default-20261001T023000Z.json"]
    for other in others:
        other.write_text("{")

    assert store.history(SUITE) == (night,)
    assert store.notice == ""
    assert all(other.read_text() == "{" for other in others)


def test_a_night_of_a_newer_version_is_read_as_far_as_it_is_known(store, make_night) -> None:
    """Keys that are not known are passed over; one that cannot be read at all stays."""
    night = make_night(0, {("llm", "disk"): "warn"})
    path = store.write(night)
    data = {**json.loads(path.read_text()), "version": 9, "weather": "rain"}
    data["findings"][0]["colour"] = "red"
    path.write_text(json.dumps(data))
    strange = path.with_name("20270101T000000.000000Z-abcdefab.json")
    strange.write_text('{"version": 9, "night": {}}')

    assert store.history(SUITE) == (night,)
    assert strange.exists()
    assert store.notice.startswith(f"{strange} is of a newer eagleops, and is passed over: ")


def test_old_nights_are_removed(store, make_night) -> None:
    """All but the latest; a night that was cut off among the old ones goes with them."""
    for day in range(10):
        store.write(make_night(day, {("llm", "disk"): "pass"}))
    store.write(make_night(2.5, {}, ended_utc=None, outcome="running"))
    store.write(make_night(9.5, {}, ended_utc=None, outcome="running"))
    folder = store.folder_of(SUITE)
    partial = folder / ".x.json.1-0.new"
    partial.write_text("")
    os.utime(partial, (0, 0))
    fresh = folder / ".y.json.1-0.new"
    fresh.write_text("")

    removed = store.prune(SUITE, 4)

    assert len(removed) == 7
    assert [night.began_utc[8:10] for night in store.history(SUITE)] == ["07", "08", "09", "10"]
    assert len(kept(store)) == 5
    assert (partial.exists(), fresh.exists()) == (False, True)
    assert store.prune(SUITE, 4) == ()
    assert len(store.prune(SUITE, 0)) == 3


def test_nights_that_a_standing_fault_goes_back_to_are_kept(store, make_night) -> None:
    """Or else it would be told as new when somebody can look again."""
    for day, state in enumerate(["pass", "pass", "fail", *["skip"] * 7]):
        store.write(make_night(day, {("llm", "disk"): state}))

    store.prune(SUITE, 3)

    assert [night.began_utc[8:10] for night in store.history(SUITE)][:2] == ["03", "04"]
    store.write(make_night(10, {("llm", "disk"): "pass"}))
    assert len(store.prune(SUITE, 3)) == 6


READER = """
import os, sys
from pathlib import Path
from eagleops.errors import EagleError
from eagleops.nights.night import Night
from eagleops.nights.store import NightStore
os.setgroups([]); os.setgid(65534); os.setuid(65534)
store = NightStore(Path(sys.argv[1]))
try:
    print(len(store.history("default")), store.notice or "no notice")
    store.write(Night(suite="default", uuid="other", began_utc="2026-10-02T00:00:00Z"))
except EagleError as error:
    print(error)
try:
    with store.lock("default"):
        print("locked")
except EagleError as error:
    print(error)
"""


def test_another_user_reads_and_is_told_that_nothing_can_be_kept(make_night) -> None:
    """What is damaged stays in a folder that cannot be written, and is told."""
    needs.root("becoming a user who may not write")
    # The whole way to the file must be open to that user.
    public = Path("/var/tmp") / f"eagleops-test-{os.getpid()}-nights"
    store = NightStore(public)
    path = store.write(make_night(0, {}))
    try:
        damaged = path.with_name("20261002T000000.000000Z-aaaaaaaa.json")
        damaged.write_text("{")
        for one, mode in ((public, 0o755), (path.parent, 0o755), (path, 0o644), (damaged, 0o644)):
            one.chmod(mode)
        shown = subprocess.run(
            [sys.executable, "-c", READER, public], check=False, capture_output=True, text=True
        )
    finally:
        subprocess.run(["rm", "-r", public], check=True)

    lines = shown.stdout.splitlines()
    assert shown.stderr == ""
    assert lines[0].startswith(f"1 {damaged} is no night (")
    assert lines[0].endswith("), and stays: Permission denied")
    assert "the night cannot be kept: Permission denied" in lines[1]
    assert lines[2].startswith(
        "The nights stand beside the ledger: name another place as `ledger:`"
    )
    assert lines[3] == f"{path.parent}/lock: the suite cannot be locked: Permission denied"


def test_a_place_where_nothing_can_be_made_is_told(tmp_path: Path, make_night) -> None:
    """A file in the way of the folder: the error says what, where, and the way out."""
    (tmp_path / "file").write_text("")
    store = NightStore(tmp_path / "file" / "nights")

    with pytest.raises(NightsError) as raised:
        store.write(make_night(0, {}))
    assert str(raised.value) == (
        f"{tmp_path}/file/nights/default: the nights' folder cannot be made: File exists\n"
        "The nights stand beside the ledger: name another place as `ledger:` in hosts.yaml."
    )
    with pytest.raises(NightsError, match="the nights cannot be read: Not a directory"):
        store.history(SUITE)


def test_readers_see_whole_nights_while_one_is_written(store, make_night) -> None:
    """Each reading finds the night as it was or as it is, never a part, and sets nothing aside."""
    long = make_night(0, {("llm", f"disk:{n}"): "pass" for n in range(500)})
    versions = [attrs.evolve(long, findings=long.findings[: 50 * n]) for n in range(1, 11)]
    store.write(versions[0])
    seen: list[int] = []
    done = threading.Event()
    reader = NightStore(store.folder)

    def read() -> None:
        while not done.is_set():
            (night,) = reader.history(SUITE)
            seen.append(len(night.findings))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for thread in readers:
        thread.start()
    for _ in range(3):
        for version in versions:
            store.write(version)
    done.set()
    for thread in readers:
        thread.join()

    assert len(seen) > 3
    assert set(seen) <= {50 * n for n in range(1, 11)}
    assert reader.notice == ""


def test_the_latest_nights_are_had_finished_or_not(store, make_night) -> None:
    """What a night that was cut off has left undone is looked for in them."""
    for day in range(3):
        store.write(make_night(day, {}))
    cut_off = make_night(3, {}, ended_utc=None, outcome="running")
    store.write(cut_off)

    first, second = store.latest(SUITE, 2)

    assert first == cut_off
    assert second.began_utc == "2026-10-03T02:30:00Z"
