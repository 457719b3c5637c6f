"""Who listens on a port: the LISTEN sockets of ``/proc/net/tcp``, and the processes behind them.

Two servers may listen on one port at once (SO_REUSEPORT, as vLLM's does) and share what
comes in, with no error anywhere: so the answer is always a list.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Any, Dict, Iterable, List, NamedTuple, Set

from eagleops.remote.process_table import owner, title, user

LISTEN = "0A"
_LISTENS = " 0A "
_FIELDS = 10  # sl local remote st tx:rx tr:when retransmits uid timeout inode

TITLE_LENGTH = 80


class Listener(NamedTuple):
    """A socket that listens.

    Attributes:
        address: In the usual notation: ``0.0.0.0``, ``::1``.
        inode: Names the socket on this machine as long as it lives.
        uid: Of the user that made it.
    """

    address: str
    port: int
    inode: int
    uid: int


def parse(content: str, byteorder: str = sys.byteorder) -> List[Listener]:
    """The LISTEN lines of ``/proc/net/tcp`` or ``tcp6``.

    Args:
        content: The file.
        byteorder: Of the machine that it came from: the kernel prints an address as the
            words that it has in memory.
    """
    found = []
    for line in content.splitlines()[1:]:
        # Most lines of a busy machine are connections: passed over at once.
        fields = line.split() if _LISTENS in line else []
        if len(fields) >= _FIELDS and fields[3] == LISTEN:
            address, _, port = fields[1].rpartition(":")
            found.append(
                Listener(
                    _address(address, byteorder), int(port, 16), int(fields[9]), int(fields[7])
                )
            )
    return found


def on_port(port: int, pid: "int | str" = "self") -> List[Listener]:
    """The sockets that listen on ``port`` in the network namespace of ``pid``."""
    found: List[Listener] = []
    for table in ("tcp", "tcp6"):
        try:
            with open("/proc/{}/net/{}".format(pid, table), encoding="ascii") as file:
                content = file.read()
        except OSError:  # no IPv6 here, or the process is gone
            continue
        found += [listener for listener in parse(content) if listener.port == port]
    return found


def sockets(pid: int) -> Set[int]:
    """The inodes of the sockets that ``pid`` has open; empty where that may not be seen."""
    folder = "/proc/{}/fd".format(pid)
    found: Set[int] = set()
    try:
        descriptors = os.listdir(folder)
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            target = os.readlink(os.path.join(folder, descriptor))
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(int(target[len("socket:[") : -1]))
    return found


def strangers(found: Iterable[Listener], family: Iterable[int]) -> List[Listener]:
    """Those sockets that no process of ``family`` (pids) holds."""
    left = list(found)
    for pid in family:
        if not left:
            break
        own = sockets(pid)
        left = [listener for listener in left if listener.inode not in own]
    return left


def holders(inode: int) -> List[int]:
    """The pids that hold the socket ``inode``, as far as they may be seen from here."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return sorted(pid for pid in pids if inode in sockets(pid))


def describe(listener: Listener) -> Dict[str, Any]:
    """Who listens, for a message: ``pid``, ``title`` and ``user``.

    ``pid`` is None where no process can be seen to hold the socket: it belongs to another
    user, or to another PID namespace that shares the network.
    """
    pids = holders(listener.inode)
    facts = {"port": listener.port, "address": listener.address}
    if not pids:
        return dict(facts, pid=None, title="", user=user(listener.uid))
    return dict(facts, pid=pids[0], title=title(pids[0]), user=owner(pids[0]))


def sentence(facts: Dict[str, Any]) -> str:
    """:func:`describe`'s facts as the subject of a sentence."""
    if facts["pid"] is None:
        return "a process of {} that cannot be seen from here".format(facts["user"])
    return "PID {pid} ({title}, user {user})".format(**dict(facts, title=shortened(facts["title"])))


def shortened(title: str) -> str:
    """A command line's begin, where all of it would bury the message it stands in."""
    return title if len(title) <= TITLE_LENGTH else title[: TITLE_LENGTH - 3] + "..."


def reachable(found: Iterable[Listener]) -> List[str]:
    """Addresses to connect to from this machine, best first."""
    addresses: List[str] = []
    for listener in found:
        if listener.address == "0.0.0.0":  # noqa: S104 - what somebody else has bound
            addresses.append("127.0.0.1")
        elif listener.address == "::":
            addresses += ["127.0.0.1", "::1"]
        else:
            addresses.append(listener.address)
    return sorted(set(addresses), key=lambda address: (address != "127.0.0.1", address))


def _address(text: str, byteorder: str) -> str:
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    order = "<" if byteorder == "little" else ">"
    packed = struct.pack("{}{}I".format(order, len(words)), *words)
    if len(words) == 1:
        return socket.inet_ntop(socket.AF_INET, packed)
    mapped = packed[:12] == b"\0" * 10 + b"\xff\xff"
    if mapped:
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed)
