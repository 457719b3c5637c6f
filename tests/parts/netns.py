"""Network namespaces: hosts with addresses and port spaces of their own, on one machine.

A namespace is only ever reached from here and reaches only here: a veth pair each, no route
further. What is started by :meth:`NetworkNamespace.entered` lives in it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs

from parts import needs
from parts.leftovers import Claim

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@attrs.define(eq=False)
class NetworkNamespace:
    """A namespace with one address that this machine reaches.

    Attributes:
        name: For ``ip netns exec``.
        address: Its own; a /30 of 198.18.0.0/15 (RFC 2544, benchmarks), of which the other is
            this machine's end.
    """

    name: str
    address: str
    _link: str
    _claim: Claim

    @classmethod
    def make(cls, number: int) -> NetworkNamespace:
        """Makes the namespace and the way to it.

        Args:
            number: Sets the address; see :func:`parts.reserved.free_address`.
        """
        needs.root("a network namespace")
        ip = needs.program("ip", "iproute2")
        name = f"parts-{secrets.token_hex(4)}"
        third, fourth = divmod(number * 4, 256)
        near, far = (f"198.18.{third}.{fourth + end}" for end in (1, 2))
        link = f"pt{secrets.token_hex(4)}"
        made = cls(name, far, link, Claim.of("netns", name))
        try:
            for words in (
                f"netns add {name}",
                f"link add {link} type veth peer name eth0 netns {name}",
                f"addr add {near}/30 dev {link}",
                f"link set {link} up",
                f"-n {name} addr add {far}/30 dev eth0",
                f"-n {name} link set eth0 up",
                f"-n {name} link set lo up",
            ):
                subprocess.run([ip, *words.split()], check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            made.remove()
            needs.cannot(f"no network namespace here: {error.stderr.decode().strip()}")
        return made

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Puts this thread, and what it starts, into the namespace."""
        with (
            Path("/proc/thread-self/ns/net").open() as home,
            Path(f"/run/netns/{self.name}").open() as there,
        ):
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def remove(self) -> None:
        """Removes the namespace, and with it the way to it."""
        self._claim.release()
        # It goes with the namespace, unless something still runs in there.
        subprocess.run(["ip", "link", "del", self._link], check=False, capture_output=True)


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns: " + os.strerror(ctypes.get_errno()))
