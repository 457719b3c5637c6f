"""Places to launch on, and what is launched there.

The engines are real processes with a real HTTP server (``engines/``). Whatever a test has
launched is ended after it: known by its launch id in its environment, or by its state folder
in its command line, never by a name.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from eagleops.errors import EagleError
from eagleops.session import Session
from eagleops.transport.base import Transport
from parts.reserved import free_port

ENGINES = Path(__file__).with_name("engines")
MODEL = "/models/right"


@attrs.define(eq=False)
class Place:
    """A machine to launch on.

    Attributes:
        state_home: As the machine itself sees it.
        seen_home: The same folder as the test sees it.
        engines: The engines' folder, as the machine sees it.
        marks: A folder that both see, under this path on the machine...
        seen_marks: ... and under this one here.
        python: Runs the sessions and the engines.
    """

    transport: Transport
    state_home: str
    seen_home: Path
    engines: str
    marks: str
    seen_marks: Path
    python: str = sys.executable
    launch_ids: list[str] = attrs.field(factory=list)
    _sessions: list[Session] = attrs.field(factory=list)

    def session(self, **options: Any) -> Session:
        """A session of its own."""
        known = {"state_home": self.state_home, "nvml": False, **options}
        opened = Session.open(self.transport, python=self.python, options=known)
        self._sessions.append(opened)
        return opened

    def engine(self, name: str, *arguments: object) -> list[str]:
        """The command of an engine in ``engines/``."""
        return [self.python, f"{self.engines}/{name}.py", *map(str, arguments)]

    def launch(self, argv: Sequence[str], **fields: Any) -> dict[str, Any]:
        """A launch order for ``spawn``."""
        order = {
            "launch_id": secrets.token_hex(16),
            "profile": "test",
            "engine": "command",
            "model": None,
            "port": None,
            "argv": list(argv),
            "env": {},
            "inherit": [],
            "cwd": None,
            "expected": {},
            "expected_workers": {},
            "readiness": None,
            "nccl_log": False,
            "require_free_mib": None,
            **fields,
        }
        self.launch_ids.append(order["launch_id"])
        return order

    def serving(self, engine: str, *arguments: object, port: int | None = None, **fields: Any):
        """A launch order for an engine that serves on a port of its own."""
        port = port or free_port()
        argv = self.engine(engine, "--port", port, *arguments)
        return self.launch(argv, port=port, model=MODEL, readiness=readiness(port), **fields)

    def mark(self, name: str) -> str:
        """A path for an engine's ``--mark``."""
        return f"{self.marks}/{name}"

    def read_marks(self, name: str) -> list[tuple[float, str]]:
        """What an engine has marked so far: when and what."""
        try:
            lines = (self.seen_marks / name).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [(float(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in lines]

    def folder(self, name: str) -> Path:
        """A server's state folder as the test sees it."""
        return self.seen_home / "eagleops/servers" / name

    def close(self) -> None:
        """Ends the sessions and everything that was launched."""
        for session in self._sessions:
            with contextlib.suppress(EagleError):
                session.close()
        self.transport.close()
        end_all(self.launch_ids, str(self.seen_home))


def readiness(port: int, **changes: Any) -> dict[str, Any]:
    """What SGLang's adapter would send."""
    return {
        "port": port,
        "probes": [
            {"path": "/ready", "ok": [200], "missing_ok": [404]},
            {"path": "/health_generate", "ok": [200], "missing_ok": []},
        ],
        "identity": {
            "paths": ["/model_info", "/get_model_info"],
            "field": "model_path",
            "equals": MODEL,
        },
        "timeout_s": 25,
        **changes,
    }


def lives(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has reaped yet does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] != b"Z"


def of_launches(launch_ids: Sequence[str], *words: str) -> list[int]:
    """Living processes with one of the launches' ids in their environment, or a word in argv."""
    wanted = [f"EAGLEOPS_LAUNCH_ID={launch_id}".encode() for launch_id in launch_ids]
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if not lives(int(entry.name)):
                continue
            environ, title = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
            if any(word in environ for word in wanted) or any(
                word.encode() in title for word in words
            ):
                found.append(int(entry.name))
    return found


def end_all(launch_ids: Sequence[str], home: str) -> None:
    """SIGKILL to what these launches have left, until nothing is."""
    deadline = time.monotonic() + 10.0
    while left := of_launches(launch_ids, f"{home}/eagleops/servers"):
        for pid in left:
            with contextlib.suppress(OSError):
                descriptor = os.pidfd_open(pid)
                try:
                    if pid in of_launches(launch_ids, f"{home}/eagleops/servers"):
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                finally:
                    os.close(descriptor)
        assert time.monotonic() < deadline, f"could not end {left}"
        time.sleep(0.01)


def states(session: Session) -> Mapping[str, str]:
    """The state of each launched server."""
    return {server["name"]: server["state"] for server in session.call("servers")["servers"]}


def local_place(folder: Path, transport: Transport) -> Place:
    """This machine, by that way in, with its state in ``folder``."""
    home, marks = folder / "state", folder / "marks"
    marks.mkdir()
    return Place(transport, str(home), home, str(ENGINES), str(marks), marks)


def session_pid(session: Session) -> int:
    """The pid of the interpreter behind a session on this machine."""
    found = session.call("execute", argv=["sh", "-c", "echo $PPID"])
    return int(base64.b64decode(found["stdout"]))
