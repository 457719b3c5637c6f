"""Fixtures: ``place`` (this machine) and ``any_place`` (also over SSH, and in a container)."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from parts.reserved import free_port
from servers.places import ENGINES, Place, local_place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """This machine."""
    made = local_place(tmp_path, LocalTransport())
    yield made
    made.close()


@pytest.fixture(params=["local", "ssh", "pct"])
def any_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """This machine, then over SSH, then in a container behind SSH."""
    if request.param == "local":
        made = local_place(tmp_path, LocalTransport())
    elif request.param == "ssh":
        made = local_place(tmp_path, request.getfixturevalue("sshd").transport())
    else:
        made = _contained(request)
    yield made
    made.close()


def _contained(request: pytest.FixtureRequest) -> Place:
    container = request.getfixturevalue("container")
    outer = request.getfixturevalue("sshd").transport()
    own = f"servers-{secrets.token_hex(4)}"
    seen = container.rootfs / "shared" / own
    (seen / "marks").mkdir(parents=True)
    shutil.copytree(ENGINES, seen / "engines")
    inside = f"/shared/{own}"
    return Place(
        container.inside(outer),
        f"{inside}/state",
        seen / "state",
        f"{inside}/engines",
        f"{inside}/marks",
        seen / "marks",
        python="/usr/bin/python3",
    )


@pytest.fixture
def contained_place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A container behind SSH; it shares this machine's network."""
    made = _contained(request)
    yield made
    made.close()


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    return free_port()


@pytest.fixture
def session(place: Place) -> Session:
    """A session on this machine."""
    return place.session()
