"""How HTTP reaches a server: directly, or through the machine's transport."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator

import attrs

from eagleops.errors import UsageError
from eagleops.machine import Machine
from eagleops.streaming.http import HttpClient
from eagleops.transport.base import Transport
from eagleops.transport.forward import forward
from eagleops.transport.local import LocalTransport
from eagleops.transport.ssh_address import Address

ROUND_TRIPS = 9


@attrs.frozen
class Route:
    """The way that the requests took, and what it costs.

    Attributes:
        name: In words.
        round_trip_ms: The median of several small requests, the server's own work in it.
        asked: Which request that was.
    """

    name: str
    round_trip_ms: float | None = None
    asked: str = ""


@contextlib.contextmanager
def reached(
    machine: Machine, server: str, port: int, *, direct: bool = False, api_key: str | None = None
) -> Iterator[tuple[HttpClient, Route]]:
    """A client for the server on ``port`` of ``machine``.

    Args:
        machine: Where it runs.
        server: Its name, for messages.
        port: On the machine's loopback; with ``direct`` on its SSH address.
        direct: Connect from here instead of through the machine's transport.
        api_key: What the server wants, if it wants a key.

    Raises:
        UsageError: with ``direct``, if hosts.yaml names no address to connect to.
    """
    where = f"{machine.name}: {server}"
    transport = machine.transport
    if _is_local(transport):
        yield from _client(f"http://127.0.0.1:{port}", where, "on this machine", api_key)
    elif direct:
        host = _address_of(machine)
        yield from _client(f"http://{host}:{port}", where, f"directly to {host}", api_key)
    else:
        with forward(transport, port, python=machine.entry.python) as tunnel:
            url = f"http://127.0.0.1:{tunnel.port}"
            yield from _client(url, where, f"through {machine.where}", api_key)


def measured(client: HttpClient, route: Route, path: str) -> Route:
    """``route`` with its round trip: the median of several requests over one connection.

    Args:
        client: A client of the route.
        route: Which.
        path: Something that the server answers without work.

    Raises:
        RequestFailed: if it does not answer.
    """
    client.ask(path)  # the first one makes the connection
    taken_s = [client.ask(path).took_s for _ in range(ROUND_TRIPS)]
    asked = f"GET {path}, median of {ROUND_TRIPS}"
    return attrs.evolve(route, round_trip_ms=1000 * statistics.median(taken_s), asked=asked)


def _client(
    url: str, where: str, name: str, api_key: str | None
) -> Iterator[tuple[HttpClient, Route]]:
    with HttpClient(url, where, api_key=api_key) as client:
        yield client, Route(name)


def _is_local(transport: Transport) -> bool:
    return isinstance(transport, LocalTransport)


def _address_of(machine: Machine) -> str:
    address = machine.entry.address
    if not address:
        raise UsageError(
            problem="no address to connect to directly",
            where=machine.name,
            way_out="Leave --direct out: the way in serves for the requests, too.",
        )
    host = Address.parse(address).host
    return f"[{host}]" if ":" in host else host
