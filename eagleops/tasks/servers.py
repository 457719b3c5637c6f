"""Commands on servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.errors import UsageError
from eagleops.tasks import streams
from eagleops.tasks.command import HOST_HELP, NAME_HELP, Call, command

if TYPE_CHECKING:
    from eagleops.environment import EnvReport
    from eagleops.workflows.explain import Explained
    from eagleops.workflows.launch import LaunchReport
    from eagleops.workflows.stop import StopReport


@command(
    help={
        **HOST_HELP,
        "profile": "a profile of hosts.yaml (its default profile without)",
        "name": "the server's name (the profile's without)",
        "lint": "check the profile before anything is touched; without, it is launched as it is",
        "reset": "reset the GPUs before; without, a GPU in use refuses the launch",
        "wait": "wait until it is ready",
        "verify": "prove the workers' environment once it is ready",
        "nccl-log": "let NCCL write its own log into the server's state folder",
        "timeout": "seconds to wait until it is ready",
        "drain-timeout": "seconds to wait for GPU memory to drain before",
        "record": "record the run in the ledger",
    }
)
def launch(
    call: Call,
    profile: str | None = None,
    host: str | None = None,
    name: str | None = None,
    lint: bool = True,
    reset: bool = True,
    wait: bool = True,
    verify: bool = True,
    nccl_log: bool = True,
    timeout: float = 3600.0,
    drain_timeout: float = 60.0,
    record: bool = True,
) -> LaunchReport:
    """Lint, reset, start a profile, wait until it is ready, verify its environment."""
    library = call.library()
    chosen = library.profile(profile)
    with call.progress() as progress:
        return library.host(host).launch_report(
            chosen,
            name=name,
            lint_first=lint,
            reset_first=reset,
            wait=wait,
            verify_after=verify,
            nccl_log=nccl_log,
            timeout_s=timeout,
            drain_timeout_s=drain_timeout,
            record=record,
            progress=progress,
        )


@command(
    help={
        **HOST_HELP,
        **NAME_HELP,
        "pid": "the main process of a server that eagleops did not launch",
        "expect": "NAME=VALUE that must hold (NAME= for an empty value); may be given again",
        "profile": "what the server should run as, instead of what was launched",
        "explain": "tell the story of one variable",
        "worker": "with --explain: in the process of this PID",
    },
    repeatable=["expect"],
)
def verify_env(
    call: Call,
    expect: list[str],
    name: str | None = None,
    host: str | None = None,
    pid: int = 0,
    profile: str | None = None,
    explain: str | None = None,
    worker: int = 0,
) -> EnvReport | Explained:
    """Three witnesses for each worker and variable: what it really runs with."""
    from eagleops.workflows.explain import explain as explained
    from eagleops.workflows.verify import expectations, verify

    if worker and not explain:
        raise UsageError(
            problem="--worker says in which process --explain tells a variable's story",
            way_out="Name the variable too: --explain NCCL_PROTO.",
        )
    library = call.library()
    expected = expectations(expect)
    chosen = library.profile(profile) if profile else None
    with call.progress() as progress:
        report = verify(
            library.host(host).machine,
            name=name,
            pid=pid or None,
            expected=expected,
            profile=chosen,
            progress=progress,
        )
    return explained(report, explain, worker or None) if explain else report


@command(
    help={
        **HOST_HELP,
        **NAME_HELP,
        "follow": "go on as the log grows, until the server has ended",
        "lines": "how many of the last lines",
    }
)
def logs(
    call: Call,
    name: str | None = None,
    host: str | None = None,
    follow: bool = False,
    lines: int = 100,
) -> None:
    """The server's log."""
    import sys

    server = call.host(host).server(name)
    read = server.logs(lines=lines, follow=follow)
    if call.json:
        from eagleops.render.console import document

        body = {"ok": True, "host": server.machine.name, "name": server.name, "lines": list(read)}
        with streams.written():
            sys.stdout.write(document(call.command, body) + "\n")
        return
    with streams.written():
        for line in read:
            # A log's stray bytes must not stop its reader.
            sys.stdout.write(line.encode("utf-8", "replace").decode("utf-8") + "\n")
            sys.stdout.flush()


@command(
    help={**HOST_HELP, **NAME_HELP, "grace": "seconds between SIGTERM and SIGKILL"},
)
def stop(
    call: Call, name: str | None = None, host: str | None = None, grace: float = 10.0
) -> StopReport:
    """SIGTERM, a grace period, SIGKILL for the whole tree; wait for the drain."""
    with call.progress() as progress:
        return call.host(host).server(name).stop(grace_s=grace, progress=progress)
