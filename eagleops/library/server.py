"""A launched server, with the verbs of the tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from eagleops.engines import engine
from eagleops.environment import EnvReport
from eagleops.errors import CheckFailed
from eagleops.machine import Machine
from eagleops.measuring import prompts
from eagleops.measuring.prompts import Prompt
from eagleops.server import ServerFacts
from eagleops.workflows.bench import Settings, bench
from eagleops.workflows.bench_record import bench_and_record, load_and_record
from eagleops.workflows.bench_result import BenchResult
from eagleops.workflows.launch import READY_LIMIT_S, LaunchReport, await_ready
from eagleops.workflows.load import LoadResult, load
from eagleops.workflows.load_tools import LoadSpec
from eagleops.workflows.logs import logs
from eagleops.workflows.progress import Progress, unwatched
from eagleops.workflows.stop import StopReport, stop
from eagleops.workflows.verify import verify


@attrs.define(eq=False)
class Server:
    """A launched server by its name; it lives on without this object.

    Attributes:
        report: How it was launched; None where it was found.
        ledger: Where what is measured of it is recorded; None for the user's own ledger.
    """

    machine: Machine
    name: str
    report: LaunchReport | None = attrs.field(default=None, repr=False)
    ledger: Path | None = attrs.field(default=None, repr=False)

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

    def bench(
        self,
        *,
        runs: int = 5,
        tokens: int = 256,
        warmups: int = 1,
        prompt: str | Prompt = prompts.DEFAULT,
        record: bool = True,
        progress: Progress = unwatched,
        **more: Any,
    ) -> BenchResult:
        """Measures its decode speed: see :func:`eagleops.workflows.bench.bench`.

        Args:
            runs: Replies that count.
            tokens: Of each reply.
            warmups: Replies before that do not count.
            prompt: The name of a shipped text, or :func:`eagleops.measuring.prompts.given`.
            record: Record the figures in the ledger, with the run of its launch.
            progress: Told of each run.
            more: ``sample``, ``interval_s``, ``direct`` and ``api_key``, as there.

        Raises:
            CheckFailed, CannotTell, Unreachable: as there.
        """
        text = prompts.prompt(prompt) if isinstance(prompt, str) else prompt
        settings = Settings(runs, tokens, warmups, text)
        if not record:
            return bench(self.machine, self.name, settings, progress=progress, **more)
        return bench_and_record(
            self.ledger, self.machine, self.name, settings, progress=progress, **more
        )

    def load(
        self, spec: str | LoadSpec, *, record: bool = True, progress: Progress = unwatched
    ) -> LoadResult:
        """Has its engine's own benchmark put load on it: see :mod:`eagleops.workflows.load`.

        Args:
            spec: How much, for example ``concurrency=64``.
            record: Record the figures in the ledger, with the run of its launch.
            progress: Told of the benchmark's output.

        Raises:
            UsageError, CheckFailed, Unreachable: as there.
        """
        wanted = LoadSpec.parse(spec) if isinstance(spec, str) else spec
        if not record:
            return load(self.machine, self.name, wanted, progress=progress)
        return load_and_record(self.ledger, self.machine, self.name, wanted, progress=progress)

    def logs(self, *, lines: int = 100, follow: bool = False) -> Iterator[str]:
        """Its log, line by line: see :func:`~eagleops.workflows.logs.logs`."""
        return logs(self.machine, self.name, lines=lines, follow=follow)

    def stop(self, *, grace_s: float = 10.0, progress: Progress = unwatched) -> StopReport:
        """Ends its whole tree and waits for the drain: see :mod:`eagleops.workflows.stop`."""
        return stop(self.machine, self.name, grace_s=grace_s, progress=progress)
