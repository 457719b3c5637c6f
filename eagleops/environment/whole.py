"""What is worth knowing of a server as a whole: what it runs with besides what was asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eagleops.environment import nccl_variables as nccl
from eagleops.environment.values import Value, quoted, value_of


def conf_files(read: Mapping[str, Any]) -> dict[str, dict[str, Value]]:
    """What the conf files that its processes' NCCL reads set, by path and name.

    Args:
        read: The ``environ`` operation's result.
    """
    found: dict[str, dict[str, Value]] = {}
    for process in read["processes"]:
        for file in process["conf_files"]:
            for name, content in file["variables"].items():
                value = value_of(content, read["salt"])
                if value is not None and nccl.is_nccl(name):
                    found.setdefault(file["path"], {})[name] = value
    return found


def notes(
    read: Mapping[str, Any],
    conf_files: Mapping[str, Mapping[str, Value]],
    expected: Collection[str],
) -> list[str]:
    """A sentence for each thing that nobody asked for, or that could not be seen.

    Args:
        read: As :func:`conf_files`, of which the next is the answer.
        conf_files: What conf files set.
        expected: The variables that somebody asked for.
    """
    told = {
        f"{path} sets {name}={quoted(value)}, which nobody asked for": None
        for path, settings in conf_files.items()
        for name, value in settings.items()
        if name not in expected
    }
    for process in read["processes"]:
        for file in process["conf_files"]:
            if file["why"]:
                told[f"{file['path']} cannot be read: {file['why']}"] = None
        facts = process["nccl"]["facts"]
        if facts is not None and len(facts["versions"]) > 1:
            versions = ", ".join(facts["versions"])
            told[f"PID {process['pid']} runs more than one NCCL: {versions}"] = None
    if read["gone"]:
        pids = ", ".join(str(pid) for pid in read["gone"])
        told[f"ended while being read: PID {pids}"] = None
    return list(told)
