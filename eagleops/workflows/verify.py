"""Verify: what each process of a server really runs with, asked in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from eagleops.engines import ENGINES, ExpectedWorkers, Override
from eagleops.engines import Engine as EngineAdapter
from eagleops.engines.roles import python_role
from eagleops.environment import Engine, EnvReport, judge
from eagleops.errors import ProfileError, UsageError
from eagleops.profile import Profile
from eagleops.server import require_name
from eagleops.session import OnEvent
from eagleops.workflows.progress import Progress, events_of, unwatched
from eagleops.workflows.secrets import by_reference, revealed

# As their makers write them.
_ENGINE_NAMES = {"sglang": "SGLang", "vllm": "vLLM"}
STATE_DIR = "{state_dir}"


class Asked(Protocol):
    """A machine, as far as this workflow needs one: :class:`eagleops.machine.Machine`."""

    @property
    def name(self) -> str:
        """As in hosts.yaml."""

    def call(self, op: str, *, on_event: OnEvent | None = None, **args: Any) -> dict[str, Any]:
        """Runs one operation: see :meth:`eagleops.machine.Machine.call`."""


def verify(
    machine: Asked,
    *,
    name: str | None = None,
    pid: int | None = None,
    expected: Mapping[str, str | None] | None = None,
    profile: Profile | None = None,
    engine: str | None = None,
    progress: Progress = unwatched,
) -> EnvReport:
    """Reads the environment of a server's processes and judges it.

    What is expected comes from the record of the launch; a ``profile`` takes its place, and
    ``expected`` is laid over either.

    Args:
        machine: Where the server runs.
        name: A launched server's; without ``name`` and ``pid`` the only one that lives.
        pid: The main process of a server that eagleops did not launch.
        expected: Name to value; None for a variable that must not be set.
        profile: What the server should run as.
        engine: Its engine, where neither a record nor a profile says it: process titles and
            arguments tell it as a rule.
        progress: Told of each step.

    Raises:
        UsageError: before anything is asked, if ``pid`` is given and nothing is expected, or
            no server can have that name.
        OperationFailed: ``no_such_server``, ``which_server``, ``not_running`` or
            ``no_such_process``.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    if name is not None:
        require_name(name)
    if pid is not None and profile is None and not expected:
        raise UsageError(
            problem=f"nothing is expected of PID {pid}",
            where=machine.name,
            way_out="Say what: --expect NAME=VALUE (more than once), or --profile PROFILE.",
        )
    asked = {**(revealed(profile.env) if profile else {}), **(expected or {})}
    secrets = by_reference(profile.env) if profile else []
    read = machine.call(
        "environ",
        name=name,
        pid=pid,
        names=list(asked),
        secrets=secrets,
        on_event=events_of("verify", progress),
    )
    spec = read["spec"] or {}
    recorded = {} if profile is not None else spec.get("expected", {})
    values = _with_state_dir({**recorded, **asked}, read["server"])
    chosen = engine or (profile.engine if profile else "") or (read["server"] or {}).get("engine")
    facts = _engine_facts(chosen or _recognised(read["processes"]), profile, read)
    return judge(read, values, host=machine.name, engine=facts, secrets=secrets)


def expectations(pairs: Iterable[str]) -> dict[str, str | None]:
    """``NAME=VALUE`` pairs, as ``--expect`` takes them.

    Raises:
        UsageError: for one without a name or without ``=``.
    """
    expected: dict[str, str | None] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise UsageError(
                problem=f"NAME=VALUE is expected, got {pair!r}",
                where="--expect",
                way_out="For example: --expect NCCL_PROTO=LL.",
            )
        expected[name] = value
    return expected


def _with_state_dir(
    expected: Mapping[str, str | None], server: Mapping[str, Any] | None
) -> dict[str, str | None]:
    folder = (server or {}).get("state_dir")
    return {
        name: value.replace(STATE_DIR, folder)
        if folder and value and name == "NCCL_DEBUG_FILE"
        else value
        for name, value in expected.items()
    }


def _engine_facts(name: str, profile: Profile | None, read: Mapping[str, Any]) -> Engine:
    adapter = ENGINES.get(name)
    if adapter is None:
        return Engine(role=lambda _title, argv: python_role(argv))
    workers = (
        adapter.expected_workers(profile)
        if profile is not None
        else ExpectedWorkers.from_dict((read["spec"] or {}).get("expected_workers", {}))
    )
    return Engine(
        name=_ENGINE_NAMES.get(adapter.name, adapter.name),
        role=adapter.role,
        missing=workers.missing,
        overrides=_overrides(adapter, profile or _as_found(adapter.name, read)),
    )


def _recognised(processes: Iterable[Mapping[str, Any]]) -> str:
    """The engine whose adapter knows a title; Python's own helpers look alike in all."""
    for process in processes:
        title, argv = process["title"], process["argv"]
        for adapter in ENGINES.values():
            if adapter.role(title, argv) not in (None, python_role(argv)):
                return adapter.name
    return ""


def _overrides(adapter: EngineAdapter, profile: Profile) -> tuple[Override, ...]:
    try:
        return adapter.overrides(profile)
    except ProfileError:  # a flag that no engine takes: what it does is then not known
        return ()


def _as_found(engine: str, read: Mapping[str, Any]) -> Profile:
    """A profile of the server as it was started: by its record, or by its main process."""
    spec, processes = read["spec"], read["processes"]
    argv: Iterable[str] = ()
    started_with: Mapping[str, Any] = {}
    if spec is not None:
        argv, started_with = spec["argv"], spec["expected"]
    elif processes:
        main: Mapping[str, Any] = processes[0]
        argv, started_with = main["argv"], main["initial"]["variables"]
    env = {
        name: value
        for name, value in started_with.items()
        if isinstance(value, str) and _can_be_said(env={name: value})
    }
    return Profile(name="as found", engine=engine, args=_flags(argv), env=env)


def _can_be_said(**values: Any) -> bool:
    """Whether a profile can say it: a process may hold what no profile can."""
    try:
        Profile(name="as found", engine="command", **values)
    except ProfileError:
        return False
    return True


def _flags(argv: Iterable[str]) -> dict[str, str | bool]:
    """The flags of a command, as a profile would write them: enough to tell which are there."""
    flags: dict[str, str | bool] = {}
    last = ""
    for argument in argv:
        if argument.startswith("--"):
            last, equals, value = argument[2:].partition("=")
            flags[last] = value if equals else True
        elif last and flags[last] is True:
            flags[last] = argument
    return {name: value for name, value in flags.items() if _can_be_said(args={name: value})}
