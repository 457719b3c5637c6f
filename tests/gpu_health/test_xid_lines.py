"""Xid errors in the lines of the kernel's log."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.xid import TEXT_LIMIT, Xid, folded, parse

BUS = "00000000:01:00.0"


@pytest.mark.parametrize(
    ("line", "xid"),
    [
        (
            "NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=python3, GPU has fallen off the bus.",
            Xid(BUS, 79, 1234, "python3", "GPU has fallen off the bus."),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
            Xid(BUS, 79, None, None, "GPU has fallen off the bus."),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 13, pid='<unknown>', name=<unknown>, Exception: ESR 0x57",
            Xid(BUS, 13, text="Exception: ESR 0x57"),
        ),
        (
            "[ 1399.140323] NVRM: Xid (0000:03:00): 14, Channel 00000001",
            Xid("00000000:03:00.0", 14, text="Channel 00000001"),
        ),
        (
            "NVRM: Xid (PCI:0001:c8:00 GPU-I:01 GPU-CI:00): 43, pid=7, name=sglang::schedul, Ch 1",
            Xid("00000001:C8:00.0", 43, 7, "sglang::schedul", "Ch 1", "GPU-I:01 GPU-CI:00"),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 45, pid=5, name=a, Ch 8, mask 1 caused by previous Xid 31",
            Xid(BUS, 45, 5, "a", "Ch 8, mask 1 caused by previous Xid 31"),
        ),
        ("NVRM: Xid (PCI:0000:01:00): 63", Xid(BUS, 63)),
    ],
)
def test_each_form_that_drivers_write_is_read(line: str, xid: Xid) -> None:
    """With a process or without, of a whole GPU or of a MIG instance, old and new."""
    assert parse(line) == xid


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NVRM: GPU at PCI:0000:01:00: GPU-34d7319c-5b19-1e75-186d-c187099e4fe5",
        "NVRM: Xid (PCI:0000:01:00): none",
        "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 11001, Fatal, ingress invalid command",
        "NVRM: Xid (PCI:0000:01:00): 99999999, text",
    ],
)
def test_no_other_line_is_one(line: str) -> None:
    """The driver says more than Xids, and NVSwitches have errors of their own."""
    assert parse(line) is None


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="\u2028\u2029"),
    max_size=80,
)


@given(
    domain=st.integers(0, 0xFFFF),
    bus=st.integers(0, 0xFF),
    code=st.integers(1, 999),
    pid=st.integers(1, 4_194_304),
    name=st.text("abcXYZ019 :_-./", min_size=1, max_size=15).map(str.strip).filter(bool),
    text=WORDS.map(str.strip),
)
def test_what_the_driver_writes_is_what_is_read(
    domain: int, bus: int, code: int, pid: int, name: str, text: str
) -> None:
    """Each part comes back as it went in, whatever the message says."""
    line = f"NVRM: Xid (PCI:{domain:04x}:{bus:02x}:00): {code}, pid={pid}, name={name}, {text}"

    read = parse(line)

    assert read == Xid(f"{domain:08X}:{bus:02X}:00.0", code, pid, name, text[:TEXT_LIMIT])


@given(st.text(), st.text())
def test_no_text_stops_it(before: str, after: str) -> None:
    """Whatever stands around it, a line is an Xid or it is not."""
    read = parse(f"{before}NVRM: Xid (PCI:0000:01:00): {after}")

    assert read is None or read.bus_id.count(":") == 2


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e10, allow_nan=False),
            st.builds(
                Xid,
                st.sampled_from([BUS, "00000000:02:00.0"]),
                st.sampled_from([13, 31, 79]),
                process=st.sampled_from([None, *map(str, range(20))]),
            ),
        ),
        max_size=200,
    ),
    st.integers(0, 12),
)
def test_a_storm_is_bounded_and_none_is_lost(told: list[tuple[float, Xid]], limit: int) -> None:
    """However many there are, each GPU and code is told, and the counts add up."""
    groups = folded(told, limit)

    kinds = Counter((xid.bus_id, xid.xid) for _, xid in told)
    counted: Counter[tuple[str, int]] = Counter()
    for group in groups:
        counted[group["bus_id"], group["xid"]] += group["count"]
        assert group["time_s"] <= group["last_s"]
    assert counted == kinds
    assert len(groups) <= limit + len(kinds)
    assert [group["time_s"] for group in groups] == sorted(group["time_s"] for group in groups)


XID = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "line",
    [
        f"usb 1-1: Product: {XID}",
        f"usb 1-1: Product: x\n{XID}",
        f"audit: type=1400 comm='{XID}'",
        f" {XID}",
        f"[x] {XID}",
    ],
)
def test_what_others_call_themselves_is_no_xid(line: str) -> None:
    """A device's or a program's own name reaches the kernel's log too, line ends included."""
    assert parse(line) is None


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "\u202eevil", "a\x00b", "a\u2028b"])
def test_a_process_cannot_hide_its_xid_by_its_name(name: str) -> None:
    """Nor move anybody's cursor with it."""
    read = parse(f"NVRM: Xid (PCI:0000:01:00): 31, pid=7, name={name}, Ch 8")

    assert read is not None
    assert (read.xid, read.pid, read.text) == (31, 7, "Ch 8")
    assert read.process is not None
    assert read.process.isprintable()
