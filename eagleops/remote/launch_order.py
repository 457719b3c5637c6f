"""What a launch comes to on this machine: its whole environment, its program, its folder.

The environment is the same by every way in (SSH, pct, local). It is a small base, then what
the profile inherits from the target by name, then what the profile says:

========  =======================================================
HOME      of this user, as the password database has it
USER      likewise
LOGNAME   likewise
SHELL     likewise
PATH      the machine's ``path`` option, else :data:`USUAL_PATH`
LANG      ``C.UTF-8``
========  =======================================================

``EAGLEOPS_SERVER`` and ``EAGLEOPS_LAUNCH_ID`` name the server and the launch in each process.
"""

from __future__ import annotations

import os
import pwd
import stat
from typing import Any, Dict, List, Optional

from eagleops.remote import server_record
from eagleops.remote.command import USUAL_PATH
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure

STATE_DIR = "{state_dir}"


def environment(
    context: Context, name: str, launch: Dict[str, Any], state_dir: str
) -> Dict[str, str]:
    """The server's whole environment; undecodable bytes are surrogate escapes.

    Args:
        context: The operation's surroundings.
        name: The server's.
        launch: ``env``: a null value takes a variable out; ``inherit``: names that are read
            from this session's environment where it has them.
        state_dir: What ``{state_dir}`` in NCCL_DEBUG_FILE becomes.

    Raises:
        Failure: ``spawn_failed`` for what no environment can hold.
    """
    composed = _base(context)
    for inherited in launch.get("inherit") or ():
        found = os.environb.get(_raw(inherited))
        if found is not None:
            composed[inherited] = found.decode("utf-8", "surrogateescape")
    for variable, value in (launch.get("env") or {}).items():
        if value is None:
            composed.pop(variable, None)
        else:
            composed[variable] = value
    if "NCCL_DEBUG_FILE" in composed:
        composed["NCCL_DEBUG_FILE"] = composed["NCCL_DEBUG_FILE"].replace(STATE_DIR, state_dir)
    composed["EAGLEOPS_SERVER"] = name
    composed["EAGLEOPS_LAUNCH_ID"] = launch["launch_id"]
    for variable, value in composed.items():
        if not variable or "=" in variable or "\0" in variable + value:
            raise Failure("spawn_failed", "no environment can hold {!r}".format(variable))
    return composed


def folder(launch: Dict[str, Any]) -> str:
    """The folder that the server starts in: ``cwd``, else the home directory.

    Raises:
        Failure: ``spawn_failed`` if it is none.
    """
    wanted: str = launch.get("cwd") or server_record.home()
    if not os.path.isabs(wanted):
        raise _refused("the folder {} is no absolute path".format(wanted))
    if not os.path.isdir(_raw(wanted)):
        if launch.get("cwd"):
            raise _refused("there is no folder {} to start in".format(wanted))
        return "/"
    return wanted


def program(argv: List[str], env: Dict[str, str], start_folder: str) -> str:
    """The file that ``argv[0]`` names, looked up on the server's own PATH.

    Raises:
        Failure: ``spawn_failed`` if it is not there, or not executable.
    """
    if not argv or not argv[0]:
        raise _refused("there is no command to launch")
    if any("\0" in argument for argument in argv):
        raise _refused("an argument has a zero byte in it, which no command can take")
    wanted = argv[0]
    if "/" in wanted:
        found = os.path.join(start_folder, wanted)
        problem = _unfit(found)
        if problem:
            hint = (
                "No shell reads the command: write the path without ~ or $."
                if (wanted[0] in "~$")
                else "Name a program of that machine in the profile."
            )
            raise _refused("{} {}".format(found, problem), hint)
        return found
    problem = None
    for place in env.get("PATH", "").split(":"):
        if place:
            found = os.path.join(place, wanted)
            unfit = _unfit(found)
            if unfit is None:
                return found
            problem = problem or (None if unfit == _MISSING else "{} {}".format(found, unfit))
    raise _refused(
        problem or "{} is on none of the server's PATH {}".format(wanted, env.get("PATH", "")),
        "Name it with its whole path in the profile, or set PATH in its env.",
    )


_MISSING = "is not there"


def _unfit(path: str) -> Optional[str]:
    try:
        facts = os.stat(_raw(path))
    except OSError as error:
        return (
            "cannot be reached: {}".format(error.strerror)
            if (isinstance(error, PermissionError))
            else _MISSING
        )
    if not stat.S_ISREG(facts.st_mode):
        return "is no file"
    return None if os.access(_raw(path), os.X_OK) else "is not executable"


def _base(context: Context) -> Dict[str, str]:
    path = context.options["path"] or USUAL_PATH
    base = {"HOME": server_record.home(), "PATH": path, "LANG": "C.UTF-8"}
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        return dict(base, USER=str(os.geteuid()), LOGNAME=str(os.geteuid()), SHELL="/bin/sh")
    shell = entry.pw_shell or "/bin/sh"
    return dict(base, USER=entry.pw_name, LOGNAME=entry.pw_name, SHELL=shell)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _refused(problem: str, way_out: str = "") -> Failure:
    return Failure("spawn_failed", problem, way_out=way_out)
