"""Which Python a server runs on, and where that Python looks for packages."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional

from eagleops.remote import command
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure

LIMIT_S = 20.0
# What changes where an interpreter looks; a server's other variables are not handed on.
LOOKUP = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "PYTHONSAFEPATH")
# The interpreter itself is asked: its .pth files, virtual environment and user site decide.
_QUESTION = (
    "import json, platform, sys; print(json.dumps({'version': platform.python_version(),"
    " 'implementation': platform.python_implementation(), 'executable': sys.executable,"
    " 'prefix': sys.prefix, 'path': sys.path}))"
)
_NAME = re.compile(r"(python|pypy)[0-9.]*\Z")

Facts = Dict[str, Any]


def ask(
    context: Context, python: str, variables: Mapping[str, str], cwd: Optional[str] = None
) -> Facts:
    """What the interpreter ``python`` says of itself; it imports nothing of its packages.

    Args:
        context: The operation's surroundings.
        python: A path, or a name on PATH.
        variables: A server's environment; of it only :data:`LOOKUP` is handed on.
        cwd: The server's working directory: ``python -m`` looks there first.

    Returns:
        ``executable``, ``version``, ``prefix``, ``path``, and as ``problem`` why not.
    """
    facts: Facts = {
        "executable": python,
        "version": None,
        "implementation": None,
        "prefix": None,
        "path": [],
        "problem": None,
    }
    kept = ["{}={}".format(name, variables[name]) for name in LOOKUP if name in variables]
    plain = ["PATH=" + command.search_path(context), "HOME=" + os.path.expanduser("~")]
    try:
        argv = ["env", "-i", *plain, *kept, python, "-c", _QUESTION]
        finished = command.run(context, argv, LIMIT_S)
        if finished.exit_status != 0:
            last = finished.stderr.strip().rpartition("\n")[2] or "no output"
            problem = "{} ended with exit status {}: {}"
            return dict(facts, problem=problem.format(python, finished.exit_status, last))
        facts.update(json.loads(finished.stdout.strip().rpartition("\n")[2]))
    except Failure as failure:
        return dict(facts, problem=failure.message)
    except ValueError:
        return dict(facts, problem="{} did not answer in its own words".format(python))
    # The question's own "" or cwd is not the server's.
    found = [entry for entry in facts["path"] if entry]
    facts["path"] = ([cwd] if cwd else []) + found
    return facts


def interpreter_of(pids: Iterable[int]) -> Optional[str]:
    """The interpreter that a process tree was started with; None where none of it is Python.

    Args:
        pids: The main process first.
    """
    for pid in pids:
        executable = _link(pid, "exe")
        if executable is None or not is_interpreter(executable):
            continue
        # A virtual environment's python is a link: only the name that was called leads to it.
        called = (argv_of(pid) or [""])[0]
        same = os.path.isabs(called) and os.path.realpath(called) == os.path.realpath(executable)
        return called if same else executable
    return None


def is_interpreter(path: str) -> bool:
    """Whether a program is a Python, by its name."""
    return _NAME.match(os.path.basename(path)) is not None


def cwd_of(pid: int) -> Optional[str]:
    """The working directory of ``pid``; None where it is not told."""
    return _link(pid, "cwd")


def argv_of(pid: int) -> List[str]:
    """The command of ``pid`` as it stands there now; empty where it is not told."""
    try:
        with open("/proc/{}/cmdline".format(pid), "rb") as file:
            content = file.read()
    except OSError:
        return []
    return [part.decode("utf-8", "surrogateescape") for part in content.split(b"\0")[:-1]]


def _link(pid: int, name: str) -> Optional[str]:
    try:
        return re.sub(r" \(deleted\)\Z", "", os.readlink("/proc/{}/{}".format(pid, name)))
    except OSError:
        return None
