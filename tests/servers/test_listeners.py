"""Who listens on a port: the kernel's table, and the processes behind it."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote import listeners
from eagleops.remote.listeners import Listener

DATA = Path(__file__).with_name("data")
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid ...\n"


def test_only_sockets_that_listen_are_told() -> None:
    """Connections and those in TIME_WAIT do not own a port."""
    assert listeners.parse((DATA / "proc-net-tcp.txt").read_text(), "little") == [
        Listener("0.0.0.0", 8000, 36551, 1000),
        Listener("127.0.0.1", 22, 21, 0),
    ]


def test_addresses_of_ipv6_are_told_in_the_usual_notation() -> None:
    """Also a mapped IPv4 address, which is one for whoever connects."""
    assert listeners.parse((DATA / "proc-net-tcp6.txt").read_text(), "little") == [
        Listener("::", 8000, 41, 0),
        Listener("::1", 8001, 42, 0),
        Listener("127.0.0.1", 8002, 43, 0),
    ]


@given(
    st.lists(
        st.tuples(
            st.ip_addresses(),
            st.integers(0, 65535),
            st.sampled_from(["01", "06", "0A"]),
            st.integers(0, 2**32),
            st.integers(0, 2**63),
        )
    ),
    st.sampled_from(["little", "big"]),
)
def test_any_table_is_read_back(rows, byteorder) -> None:
    """On machines of both byte orders."""
    lines = []
    expected = []
    for address, port, state, uid, inode in rows:
        packed = address.packed
        order = "<" if byteorder == "little" else ">"
        words = struct.unpack(f"{order}{len(packed) // 4}I", packed)
        local = "".join(f"{word:08X}" for word in words)
        lines.append(
            f"   0: {local}:{port:04X} 00:0000 {state} 0:0 00:0 0 {uid:5} 0 {inode} 1 0 100\n"
        )
        if state == "0A":
            mapped = getattr(address, "ipv4_mapped", None)
            expected.append(Listener(str(mapped or address), port, inode, uid))

    found = listeners.parse(HEAD + "".join(lines), byteorder)

    assert [f._replace(address=ipaddress.ip_address(f.address).compressed) for f in found] == [
        e._replace(address=ipaddress.ip_address(e.address).compressed) for e in expected
    ]


@given(st.text())
def test_no_table_at_all_is_no_listener(text) -> None:
    """A line that is none is passed over."""
    assert listeners.parse("\n" + text.replace(" 0A ", " ")) == []


def test_both_sockets_of_one_port_are_told() -> None:
    """SO_REUSEPORT: two sockets, one port, no error from anybody."""
    with socket.socket() as first, socket.socket() as second:
        for one in (first, second):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        first.bind(("127.0.0.1", 0))
        port = first.getsockname()[1]
        second.bind(("127.0.0.1", port))
        first.listen()
        second.listen()

        found = listeners.on_port(port)

        inodes = {os.fstat(one.fileno()).st_ino for one in (first, second)}
        assert {listener.inode for listener in found} == inodes
        assert listeners.strangers(found, [os.getpid()]) == []
        assert listeners.strangers(found, [os.getppid()]) == found
        assert listeners.describe(found[0])["pid"] == os.getpid()


def test_a_socket_that_is_bound_and_does_not_listen_is_no_listener() -> None:
    """VLLM binds at its start and listens when it has loaded."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))

        assert listeners.on_port(bound.getsockname()[1]) == []


@pytest.mark.parametrize(
    ("addresses", "reachable"),
    [
        (["0.0.0.0"], ["127.0.0.1"]),
        (["::"], ["127.0.0.1", "::1"]),
        (["192.0.2.7"], ["192.0.2.7"]),
        (["192.0.2.7", "127.0.0.1"], ["127.0.0.1", "192.0.2.7"]),
        ([], []),
    ],
)
def test_where_to_ask_a_listener(addresses, reachable) -> None:
    """Every address of this machine means loopback; loopback comes first."""
    found = [Listener(address, 80, 1, 0) for address in addresses]

    assert listeners.reachable(found) == reachable
