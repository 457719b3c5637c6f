"""Launched servers whose processes are worker.py: here, over SSH, in a container behind it."""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import EagleError
from eagleops.session import Session
from eagleops.transport.base import Transport
from environment.programs import DATA
from parts.poll import until


@attrs.define(eq=False)
class Machine:
    """A machine as the workflow asks it.

    Attributes:
        folder: A folder of the machine, as the machine sees it...
        seen: ... and as the tests do.
        opened: How often a session was opened on it.
    """

    name: str
    transport: Transport
    folder: str
    seen: Path
    python: str
    opened: int = 0
    _session: Session | None = None

    @classmethod
    def at(cls, name: str, transport: Transport, folder: str, seen: Path, python: str) -> Machine:
        """A machine with worker.py on it."""
        seen.mkdir(parents=True, exist_ok=True)
        seen.chmod(0o755)
        shutil.copy(DATA / "worker.py", seen / "worker.py")
        return cls(name, transport, folder, seen, python)

    def session(self) -> Session:
        """The session on it."""
        if self._session is None:
            options = {"state_home": f"{self.folder}/state", "nvml": False}
            self._session = Session.open(self.transport, python=self.python, options=options)
            self.opened += 1
        return self._session

    def call(self, op: str, **settings: Any) -> dict[str, Any]:
        """As :meth:`eagleops.machine.Machine.call`."""
        return self.session().call(op, **settings)

    def leave(self) -> None:
        """Ends the session: the next call comes from another client."""
        if self._session is not None:
            self._session.close()
            self._session = None


@contextlib.contextmanager
def server(
    machine: Machine,
    plan: Mapping[str, Any],
    expected: Mapping[str, str],
    *,
    name: str = "baseline",
    env: Mapping[str, str] | None = None,
    processes: int = 1,
    **fields: Any,
) -> Iterator[dict[str, Any]]:
    """worker.py as a launched server that expects ``expected``; ended after it."""
    order = {
        "launch_id": secrets.token_hex(16),
        "profile": name,
        "engine": "sglang",
        "model": None,
        "port": None,
        "argv": [machine.python, f"{machine.folder}/worker.py", json.dumps({**plan, "forever": 1})],
        "env": {**expected, **(env or {})},
        "inherit": [],
        "cwd": None,
        "expected": dict(expected),
        "expected_workers": {},
        "readiness": None,
        "nccl_log": True,
        "require_free_mib": None,
        **fields,
    }
    spawned = machine.call("spawn", name=name, launch=order)["server"]
    try:
        log = machine.seen / "state/eagleops/servers" / name / "server.log"
        until(lambda: log.read_text().count('"found"') >= processes)
        yield spawned
    finally:
        with contextlib.suppress(EagleError):
            machine.call("stop", name=name, grace_s=0.1)


def local(folder: Path, transport: Transport, name: str = "here") -> Machine:
    """This machine, by whatever transport."""
    return Machine.at(name, transport, str(folder), folder, sys.executable)


def contained(container: Any, outer: Transport, python: str = "/usr/bin/python3") -> Machine:
    """The container, behind ``outer``."""
    own = f"environment-{secrets.token_hex(4)}"
    return Machine.at(
        "llm",
        container.inside(outer),
        f"/shared/{own}",
        container.rootfs / "shared" / own,
        python,
    )


def titled(library: str, names: Sequence[str], title: str = "sglang::scheduler") -> dict[str, Any]:
    """A plan: two spawned workers whose block is overwritten by a title."""
    return {
        "start": "spawn",
        "count": 2,
        "steps": [["overwrite", "z", title]],
        "names": list(names),
        "library": library,
    }
