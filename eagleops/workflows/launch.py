"""Launch: reset, start, wait until this very server is ready, verify its environment."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.engines import Engine, engine
from eagleops.environment import EnvReport
from eagleops.errors import CheckFailed, EagleError, ServerDied, ServerNotReady
from eagleops.lint import Finding, counted
from eagleops.machine import Machine
from eagleops.profile import Profile, SecretReference
from eagleops.server import ServerFacts, require_name
from eagleops.view import Text, Tone, View
from eagleops.workflows.lint import checked
from eagleops.workflows.progress import Progress, Step, events_of, unwatched
from eagleops.workflows.reset import ResetReport, reset
from eagleops.workflows.secrets import by_reference, revealed
from eagleops.workflows.verify import verify

# A trillion parameters from a cold disk take a good half hour; a hung start takes forever.
READY_LIMIT_S = 3600.0


@attrs.frozen
class LaunchReport:
    """A server that was started.

    Attributes:
        reset: What the reset before it did; None with ``reset=False``.
        ready_s: Seconds from the start to ready; None where nobody waited.
        environment: The verdict on its workers' environment; None where none was asked for.
        findings: What the linter found; None where nobody linted.
        run_id: Its number in the ledger; None where it was not recorded.
        notice: Why it was not, or what was done to the ledger's file.
    """

    host: str
    server: ServerFacts
    reset: ResetReport | None
    ready_s: float | None
    environment: EnvReport | None
    findings: tuple[Finding, ...] | None = None
    run_id: int | None = None
    notice: str = ""

    @property
    def ok(self) -> bool:
        """Whether it is ready and, where verified, its environment is in effect."""
        return self.environment is None or self.environment.ok

    @property
    def exit_status(self) -> int:
        """As the command's: 0, or the environment verdict's 1 or 3."""
        return 0 if self.environment is None else self.environment.exit_status

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``launch --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "server": self.server.to_dict(),
            "ready_s": self.ready_s,
            "run_id": self.run_id,
            "notice": self.notice or None,
            "reset": None if self.reset is None else self.reset.to_dict(),
            "environment": None if self.environment is None else self.environment.to_dict(),
            "lint": as_json(self.findings),
        }

    def view(self) -> View:
        """The environment's table, and a line on the server."""
        environment = View() if self.environment is None else self.environment.view()
        notes = environment.notes
        if environment.conclusion.text:
            notes = (*notes, environment.conclusion)
        if self.findings:
            told = f"lint: {counted(self.findings)} (eagleops lint --profile {self.server.profile})"
            notes = (*notes, Text(told, Tone.DIM))
        if self.notice:
            notes = (*notes, Text(self.notice, Tone.WARNING))
        return View(environment.tables, self._conclusion(), notes)

    def _conclusion(self) -> Text:
        server = self.server
        state = "started" if self.ready_s is None else f"ready after {self.ready_s:.1f} s"
        port = "" if server.port is None else f", port {server.port}"
        recorded = "" if self.run_id is None else f", recorded as run {self.run_id}"
        head = f"{self.host}: {server.name} {state} (PID {server.pid}{port}){recorded}"
        return Text(head, Tone.GOOD if self.ok else Tone.WARNING)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def launch(
    machine: Machine,
    profile: Profile,
    *,
    name: str | None = None,
    lint_first: bool = True,
    reset_first: bool = True,
    wait: bool = True,
    verify_after: bool = True,
    nccl_log: bool = True,
    idle_mib: Mapping[str, int] | None = None,
    timeout_s: float = READY_LIMIT_S,
    drain_timeout_s: float = 60.0,
    progress: Progress = unwatched,
) -> LaunchReport:
    """Starts ``profile`` on ``machine`` exactly as written.

    Args:
        machine: Where.
        profile: What.
        name: The server's; the profile's name without one.
        lint_first: Check the profile before anything is touched.
        reset_first: Reset the GPUs before; without it a GPU in use refuses the launch.
        wait: Wait until the server is ready.
        verify_after: Prove the workers' environment once it is ready.
        nccl_log: Let NCCL write its log into the server's state folder.
        idle_mib: Without a reset, what each GPU may hold and still count as free, in MiB by its
            index; the machine's own level without it.
        timeout_s: Limit of the wait in seconds.
        drain_timeout_s: Limit of the reset's drain in seconds.
        progress: Told of each step.

    Raises:
        ProfileError: before anything is touched, if the profile names no launchable server, or
            the linter finds an error in it; UsageError if ``name`` can name none.
        CheckFailed: if the GPUs did not drain, a server of that name lives, or the port is
            taken; ServerDied and ServerNotReady once it was started.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    require_name(profile.name if name is None else name)
    findings = checked(profile) if lint_first else None
    adapter = engine(profile.engine)
    request = launch_request(adapter, machine, profile, nccl_log=nccl_log)
    if idle_mib:
        request["require_free_mib"] = dict(idle_mib)
    report = start(
        machine,
        adapter,
        request,
        name=name or profile.name,
        reset_first=reset_first,
        wait=wait,
        verify_after=verify_after,
        timeout_s=timeout_s,
        drain_timeout_s=drain_timeout_s,
        progress=progress,
    )
    return attrs.evolve(report, findings=findings)


def as_json(findings: tuple[Finding, ...] | None) -> list[dict[str, Any]] | None:
    """Findings as a run records them; None where nobody linted."""
    return None if findings is None else [finding.to_dict() for finding in findings]


def start(
    machine: Machine,
    adapter: Engine,
    request: Mapping[str, Any],
    *,
    name: str,
    reset_first: bool = True,
    wait: bool = True,
    verify_after: bool = True,
    timeout_s: float = READY_LIMIT_S,
    drain_timeout_s: float = 60.0,
    progress: Progress = unwatched,
) -> LaunchReport:
    """Starts what ``request`` asks for: see :func:`launch`, which makes it of a profile.

    Raises:
        CheckFailed, Unreachable: as :func:`launch`.
    """
    machine.call("reserve", name=name, launch_id=request["launch_id"], launch=request)
    try:
        cleared = _cleared(machine, drain_timeout_s, progress) if reset_first else None
    except BaseException:
        with contextlib.suppress(EagleError):  # a machine that was lost gives itself back
            machine.call("release", launch_id=request["launch_id"])
        raise
    if cleared is not None and cleared.idle_mib:
        # Whoever was spared still holds what it holds.
        request = {**request, "require_free_mib": dict(cleared.idle_mib)}
    progress(Step("spawn"))
    spawned = machine.call("spawn", name=name, launch=request)
    server = ServerFacts.from_dict(spawned["server"])
    ready_s = None
    if wait:
        server, ready_s = await_ready(machine, adapter, name, timeout_s, progress)
    report = None
    if wait and verify_after:
        report = verify(machine, name=name, progress=progress)
    return LaunchReport(machine.name, server, cleared, ready_s, report)


def launch_request(
    adapter: Engine, machine: Machine, profile: Profile, *, nccl_log: bool = True
) -> dict[str, Any]:
    """What the ``spawn`` operation is sent: see :mod:`eagleops.remote.spawn`.

    Raises:
        ProfileError: if the profile names no launchable server, or a secret cannot be had.
    """
    command = adapter.command(profile, profile.python or machine.entry.python)
    return {
        "launch_id": secrets.token_hex(16),
        "profile": profile.name,
        "engine": profile.engine,
        "model": profile.model,
        "port": profile.port,
        "argv": revealed(command),
        "secret_words": [n for n, word in enumerate(command) if isinstance(word, SecretReference)],
        "secret_env": by_reference(profile.env),
        "env": {
            **machine.launch_env_for(profile.sim),
            **revealed(adapter.environment(profile, nccl_log=nccl_log)),
        },
        "inherit": list(profile.inherit),
        "cwd": profile.cwd,
        "expected": revealed(profile.env),
        "expected_workers": adapter.expected_workers(profile).to_dict(),
        "readiness": adapter.readiness(profile),
        "nccl_log": nccl_log,
        "require_free_mib": machine.entry.idle_mib,
    }


def await_ready(
    machine: Machine,
    adapter: Engine,
    name: str,
    timeout_s: float = READY_LIMIT_S,
    progress: Progress = unwatched,
) -> tuple[ServerFacts, float]:
    """Waits until the server ``name`` is ready; gives it and the seconds it took.

    Raises:
        ServerDied: with its exit status or signal, last log lines and, where the log shows
            one that is known, the cause.
        ServerNotReady: after ``timeout_s``; the server is left running.
    """
    result = machine.call(
        "watch", name=name, timeout_s=timeout_s, on_event=events_of("ready", progress)
    )
    server = ServerFacts.from_dict(result["server"])
    if result["outcome"] == "ready":
        return server, float(result["ready_s"])
    log_tail = tuple(result["log_tail"])
    where = f"{machine.name}: {name}"
    if result["outcome"] == "timeout":
        raise ServerNotReady(
            problem=f"not ready after {timeout_s:g} s: {result['detail']}",
            where=where,
            way_out=f"It was left running. See `eagleops logs --name {name}`, "
            f"or end it: `eagleops stop --name {name}`.",
            host=machine.name,
            server=name,
            log_tail=log_tail[-40:],
        )
    cause = adapter.diagnose(log_tail, server.exit_status, server.signal)
    ended = f"signal {server.signal}" if server.signal else f"exit status {server.exit_status}"
    raise ServerDied(
        problem=f"died before it was ready ({ended})"
        + (f": {cause.text}" if cause else "; its log shows no cause that is known"),
        where=where,
        way_out=cause.way_out if cause else f"Its log: {server.log}",
        host=machine.name,
        server=name,
        process_exit_status=server.exit_status,
        signal=server.signal,
        cause=cause.text if cause else "",
        log_tail=log_tail[-40:],
    )


def _cleared(machine: Machine, timeout_s: float, progress: Progress) -> ResetReport:
    report = reset(machine, timeout_s=timeout_s, progress=progress)
    if not report.ok:
        raise CheckFailed(
            problem=f"nothing was launched: {report.view().conclusion.text}",
            where=machine.name,
            way_out="See who holds the memory with `eagleops status`, or wait longer: "
            "`eagleops reset-gpus --timeout S`.",
            host=machine.name,
        )
    return report
