"""From what was read over there to a report: each expected variable in each process, judged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs

from eagleops.environment import nccl_variables as nccl
from eagleops.environment import whole
from eagleops.environment.report import EnvReport, MissingWorker, ProcessReport, VariableReport
from eagleops.environment.values import Secret, Value, value_of
from eagleops.environment.weighing import verdict
from eagleops.environment.witnesses import (
    Ancestor,
    ConfSetting,
    Effective,
    Initial,
    Live,
    Override,
    Witnesses,
)
from eagleops.remote import redact

# They are no workers: their environment says nothing about the model's, and they come and go.
BYSTANDERS = frozenset({"resource_tracker", "forkserver", "compile_worker", "wrapper"})
UNTITLED = "untitled"

Read = Mapping[str, Any]


class Role(Protocol):
    """What a process is: :class:`eagleops.engines.roles.Role`."""

    @property
    def role(self) -> str:
        """For example ``scheduler``."""

    @property
    def rank(self) -> str | None:
        """For example ``TP3``."""


class Worker(Protocol):
    """A process that must be there: :class:`eagleops.engines.workers.ExpectedWorker`."""

    @property
    def role(self) -> str:
        """As a :class:`Role`'s."""

    @property
    def rank(self) -> str | None:
        """As a :class:`Role`'s."""

    @property
    def title(self) -> str:
        """The title that it is likely to have."""


def _no_role(_title: str, _argv: Sequence[str]) -> Role | None:
    return None


def _none_missing(_found: Iterable[Any]) -> Sequence[Worker]:
    return ()


@attrs.frozen
class Engine:
    """What must be known of a server's engine: nothing, for one that is not known.

    Attributes:
        name: As sentences name it.
        role: What a process is, from its title and its arguments.
        missing: Of the roles that were found, which expected workers are not there.
        overrides: The variables that it sets by itself.
    """

    name: str = "the engine"
    role: Callable[[str, Sequence[str]], Role | None] = _no_role
    missing: Callable[[Iterable[Any]], Sequence[Worker]] = _none_missing
    overrides: tuple[Override, ...] = ()


Expectation = Mapping[str, str | None]


def judge(
    read: Read,
    expected: Expectation,
    *,
    host: str = "",
    engine: Engine | None = None,
    secrets: Collection[str] = (),
) -> EnvReport:
    """Judges each expected variable in each process.

    Args:
        read: The ``environ`` operation's result.
        expected: Name to value; None for a variable that must not be set, and the mark of a
            secret that was left out (``<redacted>``) for a value that is not on record.
        host: The machine, for the report.
        engine: What is known of the server's engine.
        secrets: The variables that are secrets whatever their names say.
    """
    engine = engine or Engine()
    processes = {process["pid"]: process for process in read["processes"]}
    server = read["server"] or {}
    main = processes.get(server.get("pid") or next(iter(processes), -1))
    values = _expected_values(expected, main, read["salt"], secrets)
    roles = {pid: engine.role(each["title"], each["argv"]) for pid, each in processes.items()}
    counted = _counted(roles)
    missing = engine.missing([role for role in roles.values() if role is not None])
    reading = _Reading(processes, main, read, engine)
    conf_files = whole.conf_files(read)
    return EnvReport(
        host=host,
        server=server.get("name"),
        expected=values,
        processes=tuple(
            _process(process, roles[pid], pid in counted, values, reading)
            for pid, process in processes.items()
        ),
        missing_workers=tuple(MissingWorker(one.role, one.rank, one.title) for one in missing),
        conf_files=conf_files,
        notes=tuple(whole.notes(read, conf_files, expected)),
    )


@attrs.frozen
class _Reading:
    processes: Mapping[int, Read]
    main: Read | None
    read: Read
    engine: Engine

    @property
    def salt(self) -> str:
        return str(self.read["salt"])


def _expected_values(
    expected: Expectation, main: Read | None, salt: str, secrets: Collection[str]
) -> dict[str, Value | None]:
    """Secrets as digests: from here on nothing holds the text of one."""
    values: dict[str, Value | None] = {}
    for name, value in expected.items():
        if value is not None and redact.REDACTED in value:
            started_with = None if main is None else main["initial"]["variables"].get(name)
            known = value_of(started_with, salt)
            values[name] = known if known is not None else Secret()
        elif value is not None and (name in secrets or redact.value(name, value) != value):
            values[name] = Secret.of(salt, value)
        else:
            values[name] = value
    return values


def _counted(roles: Mapping[int, Role | None]) -> set[int]:
    """The processes that the verdict rests on.

    Those with a role, and children without a title yet; all but bystanders where nothing
    else has a role, for then the engine is not known.
    """
    judged = {pid: role.role if role else "" for pid, role in roles.items()}
    workers = {pid: role for pid, role in judged.items() if role not in BYSTANDERS}
    if any(role not in {"", UNTITLED} for role in workers.values()):
        return {pid for pid, role in workers.items() if role}
    return set(workers)


def _process(
    process: Read,
    role: Role | None,
    counted: bool,
    values: Mapping[str, Value | None],
    reading: _Reading,
) -> ProcessReport:
    return ProcessReport(
        pid=process["pid"],
        role=None if role is None else role.role,
        rank=None if role is None else role.rank,
        title=process["title"],
        initial=process["initial"]["state"],
        counted=counted,
        variables={
            name: _variable(name, expected, process, reading) for name, expected in values.items()
        },
    )


def _variable(
    name: str, expected: Value | None, process: Read, reading: _Reading
) -> VariableReport:
    witnesses = Witnesses(
        name=name,
        initial=_initial(name, process["initial"], reading.salt),
        live=_live(name, process["live"], reading.salt),
        effective=_effective(name, process),
        ancestor=_ancestor(name, process, reading),
        main=_main(name, reading),
        conf=_conf(name, process["conf_files"], reading.salt),
        overrides=tuple(each for each in reading.engine.overrides if each.name == name),
        engine=reading.engine.name,
    )
    return VariableReport(expected, verdict(expected, witnesses), witnesses)


def _initial(name: str, initial: Read, salt: str) -> Initial:
    return Initial(
        state=initial["state"],
        value=value_of(initial["variables"].get(name), salt),
        why=initial["why"],
        overwritten_bytes=initial["overwritten_bytes"],
        size=initial["size"],
    )


def _live(name: str, live: Read, salt: str) -> Live:
    if live["state"] != "read":
        return Live(readable=False, why=live["why"], way_out=live["way_out"])
    return Live(value=value_of(live["variables"].get(name), salt), holder=live["holder"])


def _effective(name: str, process: Read) -> Effective:
    log = process["nccl"]
    facts = log["facts"]
    if facts is None:
        return Effective(why=log["why"], loaded=log["loaded"])
    found = facts["read"].get(name, {"values": (), "number": False})
    return Effective(
        logged=True,
        path=log["path"],
        values=tuple(found["values"]),
        number=found["number"],
        refusals=tuple(facts["refused"].get(name, ())),
        started=tuple(facts["comms_started"]),
        complete=tuple(facts["comms_complete"]),
        peers=tuple(sorted(nccl.READ_AT_INIT & set(facts["read"]) - {name})),
        env_logged=facts["env_logged"] or _lets_env_through(process),
        version=next(iter(facts["versions"]), ""),
        cut=log["cut"],
        loaded=True,
    )


def _lets_env_through(process: Read) -> bool:
    """Whether NCCL_DEBUG_SUBSYS lets NCCL name variables: by default it does."""
    variables = process["live"].get("variables")
    if variables is None:
        return False
    subsystems = str(variables.get("NCCL_DEBUG_SUBSYS") or "ENV").upper()
    named = bool({"ENV", "ALL"} & set(subsystems.removeprefix("^").split(",")))
    return named != subsystems.startswith("^")


def _ancestor(name: str, process: Read, reading: _Reading) -> Ancestor | None:
    above = reading.processes.get(process["ppid"])
    for _ in reading.processes:
        if above is None:
            return None
        if above["initial"]["state"] == "whole":
            value = value_of(above["initial"]["variables"].get(name), reading.salt)
            return Ancestor(above["pid"], value)
        above = reading.processes.get(above["ppid"])
    return None


def _main(name: str, reading: _Reading) -> Ancestor | None:
    main = reading.main
    if main is None or main["initial"]["state"] != "whole":
        return None
    return Ancestor(main["pid"], value_of(main["initial"]["variables"].get(name), reading.salt))


def _conf(name: str, files: Sequence[Read], salt: str) -> ConfSetting | None:
    for file in files:
        value = value_of(file["variables"].get(name), salt)
        if value is not None:
            return ConfSetting(file["path"], value)
    return None
