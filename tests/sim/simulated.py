"""A server on an embedded box, started as a launched one is: argv and a whole environment."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eagleops.sim.box import SimBox
from parts.poll import until
from parts.reserved import free_port

DATA = Path(__file__).parents[1] / "data" / "sim"
SGLANG = ("-m", "sglang.launch_server", "--model-path", "/shared/model")
VLLM = ("-m", "vllm.entrypoints.cli.main", "serve", "/shared/model")
EAGLE3 = (
    *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/draft"),
    *("--speculative-num-steps", "2", "--speculative-eagle-topk", "1"),
    *("--speculative-num-draft-tokens", "3"),
)
# Start-up as quick as the processes themselves.
QUICK = {"start_s": 0.1, "warmup_s": 0.05, "stop_s": 0.05}


def session_of(leader: int) -> list[int]:
    """The live processes of a session: what a server has started, whoever their parent is."""
    members = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                members.append(int(folder.name))
    return members


def title(pid: int) -> str:
    """What ps shows."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()


class SimServer:
    """One server and its log."""

    def __init__(
        self,
        box: SimBox,
        folder: Path,
        argv: Sequence[str],
        *,
        sim: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.log_file = folder / f"server-{self.port}.log"
        environment = {
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            **(env or {}),
            **box.environment,
            "EAGLEOPS_SIM_PROFILE": json.dumps({**QUICK, **(sim or {})}),
        }
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(
                [box.python, *argv, "--port", str(self.port)],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.process.pid

    @property
    def log(self) -> str:
        """Its log so far."""
        return self.log_file.read_text("utf-8", "replace")

    def members(self) -> dict[int, str]:
        """Its live processes and their titles."""
        members = {}
        for pid in session_of(self.pid):
            with contextlib.suppress(OSError):
                members[pid] = title(pid)
        return members

    def worker(self, name: str) -> int:
        """The PID of the process with that title."""
        return next(pid for pid, seen in self.members().items() if seen == name)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body; status 0 where nobody listens."""
        return self._request("GET", path, None)

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON body."""
        status, text = self._request("POST", path, json.dumps(body))
        return status, json.loads(text) if text else None

    def _request(self, method: str, path: str, body: str | None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (ConnectionError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def documents(self, path: str, body: Any) -> list[Any]:
        """The JSON events of a stream, without its ``[DONE]``."""
        return [json.loads(data) for _, data in self.events(path, body) if data != "[DONE]"]

    def events(self, path: str, body: Any) -> Iterator[tuple[float, str]]:
        """The server-sent events of a reply, each with the time when it came."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", path, json.dumps({**body, "stream": True}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        try:
            for raw in response:
                if line := raw.decode().strip():
                    yield time.monotonic(), line.removeprefix("data: ")
        finally:
            connection.close()

    def wait_ready(self, limit_s: float = 60.0) -> SimServer:
        """Waits until /health says yes."""
        until(
            lambda: self.get("/health")[0] == 200 or self.process.poll() is not None,
            limit_s=limit_s,
        )
        assert self.process.poll() is None, self.log
        return self

    def wait_ended(self, limit_s: float = 60.0) -> int:
        """Waits until every process has ended, and returns the main one's exit status."""
        status = self.process.wait(limit_s)
        until(lambda: not session_of(self.pid))
        return status

    def stop(self) -> None:
        """Kills whatever is left of it."""
        for pid in session_of(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
