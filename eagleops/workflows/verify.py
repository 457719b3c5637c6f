"""Verify: what each process of a server really runs with, asked in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from eagleops.engines import ENGINES, ExpectedWorkers, Override, Role
from eagleops.environment import Engine, EnvReport, judge
from eagleops.errors import ProfileError, UsageError
from eagleops.profile import Profile
from eagleops.session import OnEvent
from eagleops.workflows.progress import Progress, events_of, unwatched
from eagleops.workflows.secrets import revealed

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
        UsageError: before anything is asked, if ``pid`` is given and nothing is expected.
        OperationFailed: ``no_such_server``, ``which_server``, ``not_running`` or
            ``no_such_process``.
        Unreachable: if the machine cannot be reached, or was lost.
    """
    if pid is not None and profile is None and not expected:
        raise UsageError(
            problem=f"nothing is expected of PID {pid}",
            where=machine.name,
            way_out="Say what: --expect NAME=VALUE (more than once), or --profile PROFILE.",
        )
    asked = {**(revealed(profile.env) if profile else {}), **(expected or {})}
    read = machine.call(
        "environ", name=name, pid=pid, names=list(asked), on_event=events_of("verify", progress)
    )
    spec = read["spec"] or {}
    recorded = {} if profile is not None else spec.get("expected", {})
    values = _with_state_dir({**recorded, **asked}, read["server"])
    chosen = engine or (profile.engine if profile else "") or (read["server"] or {}).get("engine")
    facts = _engine_facts(chosen, profile, spec)
    return judge(read, values, host=machine.name, engine=facts)


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


def _engine_facts(name: str | None, profile: Profile | None, spec: Mapping[str, Any]) -> Engine:
    adapter = ENGINES.get(name or "")
    if adapter is None:
        return Engine(role=_any_role)
    workers = (
        adapter.expected_workers(profile)
        if profile is not None
        else ExpectedWorkers.from_dict(spec.get("expected_workers", {}))
    )
    return Engine(
        name=_ENGINE_NAMES.get(adapter.name, adapter.name),
        role=adapter.role,
        missing=workers.missing,
        overrides=_overrides(adapter.name, profile, spec),
    )


def _any_role(title: str, argv: Sequence[str]) -> Role | None:
    """The role by whichever engine knows the title."""
    roles = (adapter.role(title, argv) for adapter in ENGINES.values())
    return next((role for role in roles if role is not None), None)


def _overrides(
    engine: str, profile: Profile | None, spec: Mapping[str, Any]
) -> tuple[Override, ...]:
    if profile is None:
        profile = Profile(
            name="as launched",
            engine=engine,
            args=_flags(spec.get("argv", ())),
            env={n: v for n, v in spec.get("expected", {}).items() if v is not None},
        )
    try:
        return ENGINES[engine].overrides(profile)
    except ProfileError:  # a flag that no engine takes: what it does is then not known
        return ()


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
    return flags
