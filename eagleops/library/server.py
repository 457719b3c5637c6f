"""A launched server, with the verbs of the tool."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from eagleops.engines import engine
from eagleops.environment import EnvReport
from eagleops.errors import CheckFailed
from eagleops.machine import Machine
from eagleops.server import ServerFacts
from eagleops.workflows.launch import READY_LIMIT_S, LaunchReport, await_ready
from eagleops.workflows.logs import logs
from eagleops.workflows.progress import Progress, unwatched
from eagleops.workflows.stop import StopReport, stop
from eagleops.workflows.verify import verify


@attrs.define(eq=False)
class Server:
    """A launched server by its name; it lives on without this object.

    Attributes:
        report: How it was launched; None where it was found.
    """

    machine: Machine
    name: str
    report: LaunchReport | None = None

    def facts(self) -> ServerFacts:
        """What its state folder and its processes say now.

        Raises:
            CheckFailed: if the host knows no server of that name.
            Unreachable: if the host cannot be reached.
        """
        for facts in self.machine.call("servers")["servers"]:
            if facts["name"] == self.name:
                return ServerFacts.from_dict(facts)
        raise CheckFailed(
            problem=f"no server {self.name} was launched here",
            where=self.machine.name,
            host=self.machine.name,
        )

    def wait(
        self, *, timeout_s: float = READY_LIMIT_S, progress: Progress = unwatched
    ) -> ServerFacts:
        """Waits until it is ready.

        Raises:
            ServerDied, ServerNotReady, Unreachable: see
                :func:`~eagleops.workflows.launch.await_ready`.
        """
        adapter = engine(self.facts().engine)
        return await_ready(self.machine, adapter, self.name, timeout_s, progress)[0]

    def verify_env(self, *, progress: Progress = unwatched) -> EnvReport:
        """What each of its processes really runs with, by three witnesses.

        Raises:
            CheckFailed: if the host knows no living server of that name.
            Unreachable: if the host cannot be reached.
        """
        return verify(self.machine, name=self.name, progress=progress)

    def logs(self, *, lines: int = 100, follow: bool = False) -> Iterator[str]:
        """Its log, line by line: see :func:`~eagleops.workflows.logs.logs`."""
        return logs(self.machine, self.name, lines=lines, follow=follow)

    def stop(self, *, grace_s: float = 10.0, progress: Progress = unwatched) -> StopReport:
        """Ends its whole tree and waits for the drain: see :mod:`eagleops.workflows.stop`."""
        return stop(self.machine, self.name, grace_s=grace_s, progress=progress)
