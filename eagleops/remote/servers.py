"""Operation ``servers``, and the launched servers as other operations ask for them.

A server is ``starting``, ``ready``, ``stopping``, ``exited`` (its end is recorded) or
``lost``: its supervisor is gone and recorded no end. What is left of a lost server's tree is
in its ``tree``.
"""

from __future__ import annotations

from typing import Any, Dict, Generator, List, Optional

from eagleops.remote import server_record
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.process_table import Stat, table
from eagleops.remote.readiness import ready_by_age, wait_for_probes
from eagleops.remote.server_record import Record, servers_home
from eagleops.remote.server_tree import tree
from eagleops.remote.supervisor import now_utc

__all__ = [
    "LIVING",
    "describe",
    "find_record",
    "find_server",
    "listing",
    "servers",
    "servers_home",
    "trees",
]

LIVING = ("starting", "ready", "stopping")
# SGLang's /health_generate takes a second and more even of a ready server.
PROBE_LIMIT_S = 3.0
# Between a server's end and its record lie the supervisor's waitpid and one fsync.
EXIT_RECORD_S = 0.5


def servers(context: Context) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Every launched server; one that became ready while nobody watched is found to be."""
    yield {"event": "reading"}
    return {"servers": listing(context)}


def listing(context: Context, probe_limit_s: float = PROBE_LIMIT_S) -> List[Dict[str, Any]]:
    """Every launched server as a SERVER dict.

    Args:
        context: The operation's surroundings.
        probe_limit_s: How long to wait for the answers of those that were not yet seen
            ready, all at once. One that still loads refuses at once.
    """
    processes = table()
    records = server_record.read_all(context)
    unseen = [record for record in records if _is_unseen(record)]
    for record in wait_for_probes(context, unseen, processes, probe_limit_s):
        note_ready(record, None)
    return [describe(record, processes) for record in records]


def trees(context: Context) -> Dict[int, str]:
    """The name of the launched server that each living process of their trees belongs to."""
    processes = table()
    return {
        pid: record.name
        for record in server_record.read_all(context)
        for pid in tree(record, processes)
    }


def find_server(context: Context, name: str) -> Optional[Dict[str, Any]]:
    """The server ``name`` as a SERVER dict; None where none was started under that name."""
    record = server_record.read(context, name)
    return None if record is None else describe(record)


def find_record(context: Context, name: str) -> Record:
    """The record of the server ``name``.

    Raises:
        Failure: ``no_such_server``, with the names that there are.
    """
    record = server_record.read(context, name)
    if record is None:
        known = [other.name for other in server_record.read_all(context)]
        raise Failure(
            "no_such_server",
            "no server {} was launched here".format(name),
            way_out="Launched here: {}.".format(", ".join(known) or "none"),
            name=name,
            known=known,
        )
    return record


def describe(record: Record, processes: Optional[Dict[int, Stat]] = None) -> Dict[str, Any]:
    """The SERVER dict of ``record``."""
    alive = tree(record, table() if processes is None else processes)
    state = state_of(record)
    end = record.exit or {}
    spec = record.spec
    return {
        "name": record.name,
        "launch_id": record.launch_id,
        "profile": spec.get("profile"),
        "engine": spec.get("engine"),
        "state": state,
        "detail": _detail(record, state, alive),
        "pid": record.process["pid"],
        "supervisor_pid": record.process["supervisor_pid"],
        "port": spec.get("port"),
        "model": spec.get("model"),
        "started_utc": record.process["started_utc"],
        "ready_s": (record.ready or {}).get("ready_s"),
        "ended_utc": end.get("ended_utc"),
        "exit_status": end.get("exit_status"),
        "signal": end.get("signal"),
        "state_dir": record.folder,
        "log": record.log,
        "tree": alive,
    }


def state_of(record: Record) -> str:
    """The server's state, as the module tells them."""
    if record.exit is not None or record.reread_exit() is not None:
        return "exited"
    if record.supervisor() is None:
        # It may have recorded the end and gone between the two looks.
        return "exited" if record.reread_exit() is not None else "lost"
    if record.main() is None:
        record.await_exit(EXIT_RECORD_S)
        return "exited"
    if record.stopping is not None:
        return "stopping"
    return "ready" if record.ready is not None else "starting"


def note_ready(record: Record, ready_s: Optional[float], detail: str = "") -> None:
    """Writes ready.json; a disk that is full does not make a ready server unready."""
    ready = {"ready_s": ready_s, "ready_utc": now_utc(), "detail": detail}
    record.ready = ready
    try:
        record.write(server_record.READY, ready)
    except OSError:
        return


def _is_unseen(record: Record) -> bool:
    if state_of(record) != "starting":
        return False
    if record.spec.get("readiness") is None and ready_by_age(record.age_s()):
        note_ready(record, None)
    return record.ready is None


def _detail(record: Record, state: str, alive: List[int]) -> str:
    if state == "lost" and not record.here:
        return "the machine or the container was restarted while it ran"
    if state == "lost":
        left = "{} of its processes live".format(len(alive)) if alive else "nothing of it lives"
        return "its supervisor is gone: how it ends will not be known; {}".format(left)
    if state == "exited" and alive:
        return "{} of its processes outlived it".format(len(alive))
    if state == "ready":
        detail: str = (record.ready or {}).get("detail", "")
        return detail
    return ""
