"""Results of the environ operation, written down: by hand, or from captured facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from eagleops.remote import nccl_log
from environment.programs import DATA

SALT = "00ff"


def process(pid: int, title: str, **changes: Any) -> dict[str, Any]:
    """One process of a result: started by PID 1, both blocks whole and empty."""
    base: dict[str, Any] = {
        "pid": pid,
        "ppid": 1,
        "start_ticks": 1000 + pid,
        "own_pid": pid,
        "uid": 0,
        "title": title,
        "argv": title.split(" "),
        "initial": initial({}),
        "live": live({}),
        "nccl": {"path": None, "why": "", "cut": False, "facts": None, "loaded": False},
        "conf_files": [],
    }
    return {**base, **changes}


def initial(
    variables: Mapping[str, Any], state: str = "whole", overwritten_bytes: int = 0, size: int = 600
) -> dict[str, Any]:
    """What /proc/PID/environ says."""
    return {
        "state": state,
        "size": size,
        "overwritten_bytes": overwritten_bytes,
        "variables": dict(variables),
        "nameless": 0,
        "why": "",
        "way_out": "",
    }


def live(variables: Mapping[str, Any]) -> dict[str, Any]:
    """What getenv finds."""
    return {"state": "read", "variables": dict(variables), "nameless": 0, "holder": "libc.so.6"}


def blind(why: str, way_out: str = "") -> dict[str, Any]:
    """A live environment that cannot be read."""
    return {"state": "unreadable", "why": why, "way_out": way_out}


def log(name: str, pid: int) -> dict[str, Any]:
    """What a captured log of NCCL's says of the process ``pid``."""
    lines = (DATA / "nccl" / f"{name}.log").read_text().splitlines()
    facts = nccl_log.parse(lines)[pid].to_json()
    return {"path": f"/s/nccl.{pid}.log", "why": "", "cut": False, "facts": facts, "loaded": True}


def result(*processes: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A result; the first process is the main one."""
    server = {"name": "baseline", "pid": processes[0]["pid"], "state_dir": "/s", "engine": "sglang"}
    base = {"server": server, "spec": None, "salt": SALT, "processes": list(processes), "gone": []}
    return {**base, **changes}


def captured(entry: Mapping[str, Any], parent: int = 1) -> dict[str, Any]:
    """A process as tests/data/environment/sglang-one-h200.json holds it."""
    kept = {name: entry["live"][name] for name in entry["environ_names"] if name in entry["live"]}
    zeros, size = entry["leading_zero_bytes"], entry["environ_bytes"]
    state = "partly_overwritten" if zeros else "whole"
    return process(
        entry["pid"],
        entry["cmdline"].strip(),
        ppid=parent,
        initial=initial(kept, state, zeros, size),
        live=live(entry["live"]),
    )


def sglang_on_one_gpu() -> Sequence[tuple[str, dict[str, Any]]]:
    """Three runs of a real SGLang 0.5.17, tensor-parallel 1, as results of the operation."""
    runs = json.loads((DATA / "sglang-one-h200.json").read_text())
    found = []
    for run in runs:
        main, *rest = run["processes"]
        children = [captured(entry, main["pid"]) for entry in rest]
        found.append((run["name"], result(captured(main), *children)))
    return found
