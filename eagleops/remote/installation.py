"""Operation ``installation``: what a server runs on, so that two runs can be told apart.

The machine, the GPUs' settings, the libraries that are really loaded, the Python packages,
which of the engine's files are not as its wheel had them, and which model it was given.
Nothing is imported, loaded or changed.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Generator, List, Mapping, NamedTuple, Optional, Sequence

from eagleops.remote import (
    checkout,
    distributions,
    environ_block,
    gpu_settings,
    loaded_libraries,
    machine_facts,
    model_files,
    python_env,
    wheel_record,
)
from eagleops.remote.context import Context
from eagleops.remote.distributions import Distribution
from eagleops.remote.process_table import descendants, table
from eagleops.remote.server_record import Record
from eagleops.remote.server_tree import living_tree
from eagleops.remote.servers import find_record

Facts = Dict[str, Any]
Steps = Generator[Facts, None, Facts]

# The engine's own packages, and those whose kernels a step's time is made of.
ENGINES = {
    "sglang": ("sglang", "sgl-kernel", "sglang-kernel", "flashinfer-python"),
    "vllm": ("vllm", "flashinfer-python"),
}


class Subject(NamedTuple):
    """What is looked at.

    Attributes:
        pids: The process tree, the main process first; empty where nothing runs.
        python: The interpreter; None where there is none to look for.
        variables: The environment that it was started with, as far as it is known.
        spec: What was launched, secrets left out; None where it was not launched by eagleops.
    """

    pids: Sequence[int]
    python: Optional[str]
    argv: Sequence[str]
    variables: Mapping[str, str]
    cwd: Optional[str]
    engine: Optional[str]
    model: Optional[str]
    spec: Optional[Facts] = None


def installation(  # noqa: PLR0917 - they come by name, as JSON
    context: Context,
    server: Optional[str] = None,
    pid: Optional[int] = None,
    python: Optional[str] = None,
    packages: Optional[List[str]] = None,
    models: Optional[List[Dict[str, str]]] = None,
    variables: Optional[Dict[str, str]] = None,
    cwd: Optional[str] = None,
    thorough: bool = False,
) -> Steps:
    """Looks at a launched server, at a process, at an interpreter, or at the machine alone.

    Args:
        context: The operation's surroundings.
        server: A launched server; it need not live.
        pid: Any process; its tree is looked at.
        python: An interpreter, in place of the one that the process was started with.
        packages: The packages whose files are compared with their wheels; without them, those
            of the server's engine, and of all engines where no server is named.
        models: ``{"role", "name"}`` of each, in place of those that the command names.
        variables: The environment that a server would have, where none is looked at: it
            decides where Python and the hub's cache look.
        cwd: The folder that it would start in.
        thorough: Hash large files too.

    Raises:
        Failure: ``no_such_server``.
    """
    # At once: the client takes its own clock beside it.
    yield {"event": "clock", "time_s": time.time()}
    subject = _subject(context, server, pid, python)
    if server is None and pid is None:
        subject = subject._replace(variables=variables or {}, cwd=cwd)
    yield {"event": "reading", "of": "machine"}
    result: Facts = {"spec": subject.spec, "machine": machine_facts.facts(context)}
    yield {"event": "reading", "of": "gpus"}
    result["gpus"] = gpu_settings.settings(context)
    yield {"event": "reading", "of": "libraries"}
    result.update(loaded_libraries.loaded(context, subject.pids))
    yield {"event": "reading", "of": "python"}
    yield from _python(context, subject, result, packages, thorough)
    yield {"event": "reading", "of": "models"}
    named = (
        model_files.named_in(subject.argv, subject.model)
        if models is None
        else [model_files.Model(model["role"], model["name"]) for model in models]
    )
    result["models"] = [
        model_files.identity(model, subject.variables, subject.cwd) for model in named
    ]
    return result


def _python(
    context: Context,
    subject: Subject,
    result: Facts,
    packages: Optional[List[str]],
    thorough: bool,
) -> Generator[Facts, None, None]:
    """Adds ``python``, ``distributions`` and ``compared``."""
    result.update(python=None, distributions=[], compared=[])
    if subject.python is None:
        return
    told = python_env.ask(context, subject.python, subject.variables, subject.cwd)
    found = distributions.find(told["path"])
    result.update(python=told, distributions=distributions.as_json(found))
    wanted = packages
    if wanted is None:
        wanted = [
            name
            for engine, names in ENGINES.items()
            if subject.engine in {engine, None}
            for name in names
        ]
    for name in dict.fromkeys(map(distributions.normalised, wanted)):
        if name in found:
            compared = yield from _compared(context, found[name], told["path"], thorough)
            result["compared"].append(compared)


def _compared(
    context: Context, distribution: Distribution, path: Sequence[str], thorough: bool
) -> Steps:
    folder = distributions.source_folder(distribution)
    if folder is None:
        facts = yield from wheel_record.check(context, distribution, thorough)
    else:
        facts = wheel_record.unchecked(distribution)
        facts["checkout"] = checkout.look(context, folder)
        facts["problem"] = facts["checkout"]["problem"]
        facts["checked"] = facts["problem"] is None
    facts["shadowed_by"] = None if folder else _shadow(distribution, path)
    return facts


def _shadow(distribution: Distribution, path: Sequence[str]) -> Optional[str]:
    """A folder earlier on the path that is imported in the package's place."""
    top = distribution.name.replace("-", "_")
    for entry in path:
        if os.path.realpath(entry) == os.path.realpath(distribution.site):
            return None
        if os.path.exists(os.path.join(entry, top, "__init__.py")):
            return os.path.join(entry, top)
    return None


def _subject(
    context: Context, server: Optional[str], pid: Optional[int], python: Optional[str]
) -> Subject:
    if server is not None:
        return _of_server(find_record(context, server), python)
    if pid is not None:
        return _of_process(pid, python)
    return Subject((), python, (), {}, None, None, None)


def _of_server(record: Record, python: Optional[str]) -> Subject:
    spec = record.spec
    argv = [str(argument) for argument in spec.get("argv") or []]
    main = record.process["pid"]
    living = living_tree(record)
    pids = [pid for pid in living if pid == main] + [pid for pid in living if pid != main]
    variables = {str(k): str(v) for k, v in (spec.get("env") or {}).items()}
    return Subject(
        pids,
        python or python_env.interpreter_of(pids) or _interpreter_in(argv),
        argv,
        variables,
        spec.get("cwd") or (python_env.cwd_of(main) if main in living else None),
        spec.get("engine"),
        spec.get("model"),
        spec,
    )


def _of_process(pid: int, python: Optional[str]) -> Subject:
    pids = [pid, *sorted(descendants(table(), [pid]))]
    return Subject(
        pids,
        python or python_env.interpreter_of(pids),
        python_env.argv_of(pid),
        _variables(pid),
        python_env.cwd_of(pid),
        None,
        None,
    )


def _interpreter_in(argv: Sequence[str]) -> Optional[str]:
    """A server that has ended: its command says which interpreter it was."""
    return argv[0] if argv and python_env.is_interpreter(argv[0]) else None


def _variables(pid: int) -> Dict[str, str]:
    try:
        with open("/proc/{}/environ".format(pid), "rb") as file:
            block = environ_block.parse(file.read())
    except OSError:
        return {}
    return {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for name, value in block.variables.items()
    }
