"""The kernel's log: its ring, the journal, dmesg, and what is said where none can be read."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote import kernel_log, kmsg
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.utc import seconds, utc
from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from parts import needs

XID = "NVRM: Xid (PCI:0000:01:00): {}, pid=7, name=python3, text"


def stamp_us() -> int:
    """Now, as the kernel stamps."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def escaped(text: bytes) -> bytes:
    """As the kernel writes it into its log."""
    plain = set(range(32, 127)) - {ord("\\")}
    return b"".join(bytes([b]) if b in plain else b"\\x%02x" % b for b in text)


class Log:
    """A file in the form of /dev/kmsg, and a look at it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"5,0,0,-;Linux version 6.12\n SUBSYSTEM=x\n")

    def tell(self, text: str, *, ago_s: float = 0.0, priority: int = 4) -> None:
        """Writes a record."""
        at_us = stamp_us() - int(ago_s * 1e6)
        with self.path.open("ab") as file:
            file.write(b"%d,7,%d,-;%s\n DEVICE=+pci\n" % (priority, at_us, escaped(text.encode())))

    def xids(self, since_s: float | None = None) -> dict[str, Any]:
        """What is read of it."""
        return kernel_log.xids(Context({"kernel_log": str(self.path)}), since_s)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """An empty log."""
    return Log(tmp_path / "kmsg")


def test_an_xid_has_the_time_of_its_record(log: Log) -> None:
    """By the machine's clock, to some hundredths of a second."""
    before_s = time.time()
    log.tell(XID.format(79), ago_s=60)
    after_s = time.time()

    (found,) = log.xids()["xids"]

    assert (found["xid"], found["pid"], found["process"]) == (79, 7, "python3")
    assert before_s - 0.1 < seconds(found["time_utc"]) + 60 < after_s + 0.1


def test_older_ones_are_left_out(log: Log) -> None:
    """What the last night has seen is not told again."""
    log.tell(XID.format(13), ago_s=60)
    log.tell(XID.format(31), ago_s=10)

    found = log.xids(time.time() - 30)["xids"]

    assert [one["xid"] for one in found] == [31]


def test_only_the_kernel_is_believed(log: Log) -> None:
    """A program that writes the same words into the log has another facility."""
    log.tell(XID.format(79), priority=12)

    assert log.xids()["xids"] == []


@pytest.mark.alone
def test_a_storm_is_counted_and_quickly_read(log: Log) -> None:
    """Fifty thousand of them are one entry, in seconds."""
    line = b"4,8,%d,-;%s\n" % (stamp_us(), escaped(XID.format(31).encode()))
    with log.path.open("ab") as file:
        file.write(line * 50_000)
    log.tell(XID.format(79))

    began = time.perf_counter()
    found = log.xids()["xids"]

    assert [(one["xid"], one["count"]) for one in found] == [(31, 50_000), (79, 1)]
    assert time.perf_counter() - began < 5


def test_a_log_that_begins_too_late_says_so(log: Log) -> None:
    """What was overwritten, or said before the last boot, may have been an Xid."""
    log.path.write_bytes(b"")
    begins = [utc(time.time() - 100)]
    log.tell("first", ago_s=100)
    begins.append(utc(time.time() - 100))

    told = log.xids(time.time() - 3600)["kernel_log"]

    assert told["source"] == "kmsg"
    heads = tuple(f"the kernel's log begins at {at[:15]}" for at in begins)
    assert told["problem"].startswith(heads)


@given(st.binary(max_size=300), st.integers(0, 2**40), st.integers(0, 191))
def test_every_text_comes_back(text: bytes, at_us: int, priority: int) -> None:
    """Whatever bytes the kernel escaped."""
    record = kmsg.parse(b"%d,9,%d,c,caller=T1;%s\n" % (priority, at_us, escaped(text)))

    assert record is not None
    assert record.text == text.decode("utf-8", "backslashreplace")
    assert (record.facility, record.stamp_s) == (priority >> 3, at_us / 1e6)


@given(st.binary())
def test_no_bytes_stop_it(line: bytes) -> None:
    """A line is a record or it is none; one that begins with a blank never is."""
    kmsg.parse(line)

    assert kmsg.parse(b" " + line) is None


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_records_are_whole_wherever_a_read_ends(texts: list[bytes]) -> None:
    """A file is read in pieces that end anywhere."""
    data = b"".join(b"4,1,1,-;%s\n" % escaped(text) for text in texts)
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    try:
        found = [r.text for r in kmsg.records(Context({}), f"/proc/self/fd/{reader}")]
    finally:
        os.close(reader)

    assert found == [text.decode("utf-8", "backslashreplace") for text in texts]


def test_the_real_ring_is_read_without_waiting() -> None:
    """This machine's own, where it may be read: from its beginning to now."""
    try:
        found = list(kmsg.records(Context({})))
    except OSError as error:
        pytest.skip(f"/dev/kmsg: {error.strerror}")

    assert found
    assert all(record.stamp_s <= stamp_us() / 1e6 + 1 for record in found)


def test_a_clock_that_was_set_back_hides_nothing(log: Log) -> None:
    """The last night's time lies ahead: all that is kept is told, and why."""
    log.tell(XID.format(79), ago_s=60)

    told = log.xids(time.time() + 86_400)

    assert [one["xid"] for one in told["xids"]] == [79]
    assert "clock was set back" in told["kernel_log"]["problem"]


@pytest.fixture
def no_ring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine whose ring may not be read."""
    monkeypatch.setattr(kmsg, "DEVICE", str(tmp_path / "no-such-device"))


def program(folder: Path, name: str, text: str) -> None:
    """A program of that name that is found first."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


JOURNAL = """\
__CURSOR=s=0123456789abcdef0123456789abcdef;i={n:x};b={boot};m={n:x}00000;t={t:x};x={n:x}
__REALTIME_TIMESTAMP={t}
__MONOTONIC_TIMESTAMP={n}00000
_BOOT_ID={boot}
_TRANSPORT={transport}
_HOSTNAME=llm
_MACHINE_ID=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
MESSAGE={message}

"""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A real journal of two boots: an Xid 79 a day ago, an Xid 31 an hour ago."""
    remote = Path("/lib/systemd/systemd-journal-remote")
    if not remote.exists():
        needs.cannot("systemd-journal-remote is not installed (Debian package of that name)")
    real = needs.program("journalctl", "systemd")
    entries = (
        (90_000, "1", "kernel", "Linux version 6.12"),
        (86_000, "1", "kernel", XID.format(79)),
        (80_000, "1", "stdout", XID.format(48)),
        (3_600, "2", "kernel", XID.format(31)),
    )
    text = "".join(
        JOURNAL.format(
            n=number,
            boot=boot * 32,
            t=int((time.time() - ago_s) * 1e6),
            transport=transport,
            message=message,
        )
        for number, (ago_s, boot, transport, message) in enumerate(entries, 1)
    )
    file = tmp_path / "system.journal"
    subprocess.run([remote, "-o", file, "-"], input=text.encode(), check=True, capture_output=True)
    bin_folder = tmp_path / "bin"
    program(bin_folder, "journalctl", f'exec {real} --file {shlex.quote(str(file))} "$@"')
    return bin_folder


def read(bin_folder: Path, since_s: float | None) -> dict[str, Any]:
    """What a machine with those programs tells."""
    path = f"{bin_folder}:/usr/bin:/bin"
    return kernel_log.xids(Context({"path": path}), since_s)


@pytest.mark.usefixtures("no_ring")
@pytest.mark.parametrize(("hours", "codes"), [(0.5, []), (12, [31]), (24.5, [79, 31])])
def test_a_real_journal_reaches_back_over_boots(
    journal: Path, hours: float, codes: list[int]
) -> None:
    """Of the kernel's lines alone, and only those since then."""
    told = read(journal, time.time() - hours * 3600)

    assert [one["xid"] for one in told["xids"]] == codes
    assert told["kernel_log"]["source"] == "journal"
    assert told["kernel_log"]["problem"] is None


@pytest.mark.usefixtures("no_ring")
def test_a_journal_that_begins_too_late_says_so(journal: Path) -> None:
    """It tells what it has."""
    told = read(journal, time.time() - 40 * 3600)

    assert [one["xid"] for one in told["xids"]] == [79, 31]
    assert told["kernel_log"]["problem"].startswith("the journal holds nothing of the kernel be")


@pytest.mark.usefixtures("no_ring")
def test_the_first_night_asks_the_journal_of_this_boot(journal: Path) -> None:
    """What was before it is history."""
    assert [one["xid"] for one in read(journal, None)["xids"]] == [31]


@pytest.mark.usefixtures("no_ring")
def test_dmesg_is_the_last_resort(tmp_path: Path) -> None:
    """Its times are the kernel's own."""
    program(tmp_path / "bin", "journalctl", "exit 1")
    line = f"[{stamp_us() / 1e6:12.6f}] {XID.format(119)}"
    program(tmp_path / "bin", "dmesg", f"echo '[    0.000000] Linux'; echo '{line}'")

    told = read(tmp_path / "bin", time.time() - 10)

    assert [one["xid"] for one in told["xids"]] == [119]
    assert abs(seconds(told["xids"][0]["time_utc"]) - time.time()) < 60
    assert told["kernel_log"]["source"] == "dmesg"


@pytest.mark.usefixtures("no_ring")
def test_dmesg_of_a_kernel_that_names_threads_is_read(tmp_path: Path) -> None:
    """Kernels that are built with PRINTK_CALLER write one more bracket."""
    program(tmp_path / "bin", "journalctl", "exit 1")
    lines = f"[    0.000000][    T0] Linux\n[    1.000000][ C12] {XID.format(119)}"
    program(tmp_path / "bin", "dmesg", f"echo '{lines}'")

    told = read(tmp_path / "bin", None)

    assert [one["xid"] for one in told["xids"]] == [119]


@pytest.mark.usefixtures("no_ring")
def test_where_nothing_may_be_read_each_keeper_says_why(tmp_path: Path) -> None:
    """And the way out is named."""
    program(tmp_path / "bin", "journalctl", "exit 1")
    refusal = "dmesg: read kernel buffer failed: Operation not permitted"
    program(tmp_path / "bin", "dmesg", f"echo '{refusal}' >&2; exit 1")

    told = read(tmp_path / "bin", None)

    assert told["xids"] == []
    assert told["kernel_log"]["source"] == "none"
    for words in ("no-such-device: No such file", "journalctl shows no line", refusal, "adm"):
        assert words in told["kernel_log"]["problem"]


@pytest.fixture
def nobody(tmp_path: Path) -> Iterator[Session]:
    """A session of a user without any right."""
    needs.root("to become nobody")
    needs.program("setpriv", "util-linux")
    tmp_path.chmod(0o755)
    wrapper = tmp_path / "python"
    ids = "--reuid=65534 --regid=65534 --clear-groups"
    system = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    wrapper.write_text(f'#!/bin/sh\nexec setpriv {ids} --bounding-set=-all {system} "$@"\n')
    wrapper.chmod(0o755)
    session = Session.open(LocalTransport(), python=str(wrapper), options={"nvml": False})
    yield session
    session.close()


def test_a_user_without_rights_is_told_so(nobody: Session) -> None:
    """A log that may not be read is not one without errors."""
    if Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() == "0":
        pytest.skip("kernel.dmesg_restrict is 0: everybody may read")

    told = nobody.call("health")["kernel_log"]

    assert told["source"] == "none"
    assert "/dev/kmsg: Operation not permitted" in told["problem"]


@given(
    st.floats(0, 4e9, allow_nan=False).map(lambda s: round(s, 3)),
)
def test_times_go_there_and_back(at_s: float) -> None:
    """To the millisecond."""
    assert abs(seconds(utc(at_s)) - at_s) < 0.0011


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:00:00-01:00", 0),
        ("2026-11-30T02:30:00.5Z", 1796005800.5),
    ],
)
def test_offsets_are_read(text: str, at_s: float) -> None:
    """Of either sign."""
    assert seconds(text) == at_s


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-30T02:30:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """A filter that is ignored would tell old errors as new."""
    with pytest.raises(Failure, match="is no time; expected RFC 3339"):
        seconds(text)
