"""Fixtures of the whole suite: real parts (see tests/parts), each skipped with its reason.

With every part required (``EAGLEOPS_REQUIRE_PARTS=1``) a skip fails: see parts.skips.

``sshd``
    A real OpenSSH server on loopback for this test alone (parts.sshd.Sshd): ``.address``,
    ``.options(**changes)``, ``.transport(via=link, **changes)``, ``.link(delay_s=0.1)``,
    ``.ssh_config(alias)``, ``.connections()``, ``.kill_connections()``, ``.proxy_command``.
    Commands have an empty folder as HOME (``.home``).
``make_sshd``
    ``make_sshd(environment={"PATH": ...}, settings=["MaxSessions 2"], host_key=path)`` for
    more of them.
``make_host``
    ``make_host(...)`` is an Sshd as of make_sshd, in a network namespace of its own: its
    address, its port 22, its own loopback, so that servers' ports do not meet.
``ssh_keys``
    The key pairs of the run (parts.sshd.Keys).
``container``
    A real LXC container (parts.container.Container), one for the run, shared: ``.vmid``,
    ``.pct`` (the program), ``.wrapper`` (a Pct), ``.inside(outer_transport)``, ``.rootfs``,
    ``.run(argv)`` past every transport, ``.init_pid``.
``make_container``
    ``make_container(mounts={host_path: "/place/inside"}, settings=[...], start=True)`` for
    one of this test's own; stopped and removed after it.
``small_disk``
    A folder on a file system of 1 MiB.
``way``
    A transport, for each of local, ssh, and ssh + pct: a test that asks for it runs three
    times.
``links`` (parts.link.Link)
    ``sshd.link(delay_s=0.1)`` is a way to the server that can ``hang()``, ``resume()`` and
    be ``cut()``.

Tests say ``from parts.poll import until`` to wait for a fact with a limit, and
``from parts.reserved import free_port`` for a port that nobody else is given.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from eagleops.transport.base import Transport
from eagleops.transport.local import LocalTransport
from parts import disk
from parts.container import Container
from parts.leftovers import remove_leftovers
from parts.netns import NetworkNamespace
from parts.reserved import free_address, free_vmid
from parts.sshd import Keys, Sshd

pytest_plugins = ["parts.skips"]

# A machine that runs four tests at once is no judge of one example's time, and a server or
# a container that serves all examples of one test is meant to.
hypothesis.settings.register_profile(
    "suite",
    derandomize=True,  # the same commit passes or fails each time; `make fuzz` looks further
    deadline=None,
    database=None,  # the checkout may be read-only; a failure prints how to run it again
    print_blob=True,
    suppress_health_check=[
        hypothesis.HealthCheck.function_scoped_fixture,
        hypothesis.HealthCheck.too_slow,
    ],
)
hypothesis.settings.register_profile(
    "fuzz", hypothesis.settings.get_profile("suite"), derandomize=False
)
hypothesis.settings.load_profile("suite")

# A shell starts what runs in its background with SIGINT ignored, and children inherit that; the
# tests send SIGINT as a person at a terminal does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


_MARKS = {"sshd": "sshd", "make_sshd": "sshd", "make_host": "netns"} | {
    "container": "lxc",
    "make_container": "lxc",
}


def pytest_sessionstart() -> None:
    """Removes what an earlier run that was killed has left."""
    remove_leftovers()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test by the parts it stands on, for ``pytest -m 'not lxc'``."""
    for item in items:
        parts = set(getattr(item, "fixturenames", ()))
        way = getattr(item, "callspec", None) and item.callspec.params.get("way")
        if way in {"ssh", "ssh+pct"}:
            parts.add("sshd")
        if way == "ssh+pct":
            parts.add("container")
        for mark in {_MARKS[part] for part in parts & _MARKS.keys()}:
            item.add_marker(mark)


@pytest.fixture(scope="session")
def ssh_keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """The key pairs of this run."""
    return Keys.make(tmp_path_factory.mktemp("ssh-keys"))


@pytest.fixture
def make_sshd(
    ssh_keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Sshd]]:
    """Starts servers, and stops them after the test."""
    started: list[Sshd] = []

    def make(**settings: object) -> Sshd:
        server = Sshd.start(tmp_path_factory.mktemp("sshd"), ssh_keys, **settings)
        started.append(server)
        return server

    yield make
    for server in started:
        server.stop()


@pytest.fixture
def make_host(
    ssh_keys: Keys, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Sshd]]:
    """Makes hosts, each in a network namespace, and removes them after the test."""
    made: list[tuple[Sshd, NetworkNamespace]] = []

    def make(**settings: object) -> Sshd:
        namespace = NetworkNamespace.make(free_address())
        folder = tmp_path_factory.mktemp("host")
        made.append((Sshd.start(folder, ssh_keys, namespace=namespace, **settings), namespace))
        return made[-1][0]

    yield make
    for server, namespace in made:
        server.stop()
        namespace.remove()


@pytest.fixture
def sshd(make_sshd: Callable[..., Sshd]) -> Sshd:
    """A server for this test."""
    return make_sshd()


def _make_container(folder: Path, *, start: bool = True, **settings: object) -> Container:
    made = Container.make(folder, free_vmid(), **settings)
    if start:
        made.start()
    return made


@pytest.fixture(scope="session")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    """A running container for the whole run."""
    made = _make_container(tmp_path_factory.mktemp("lxc"))
    yield made
    made.stop()


@pytest.fixture
def make_container(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Container]]:
    """Makes containers, and stops them after the test."""
    made: list[Container] = []

    def make(*, start: bool = True, **settings: object) -> Container:
        made.append(_make_container(tmp_path_factory.mktemp("lxc"), start=start, **settings))
        return made[-1]

    yield make
    for container in made:
        container.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB for this test alone."""
    with disk.mounted(tmp_path / "disk") as folder:
        yield folder


@pytest.fixture(params=["local", "ssh", "ssh+pct"])
def way(request: pytest.FixtureRequest) -> Transport:
    """Each kind of transport, so that they can be seen to behave alike."""
    if request.param == "local":
        return LocalTransport()
    ssh = request.getfixturevalue("sshd").transport()
    if request.param == "ssh":
        return ssh
    return request.getfixturevalue("container").inside(ssh)
