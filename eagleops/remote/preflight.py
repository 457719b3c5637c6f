"""What must hold before a server is started: its name, its port and its GPUs are free."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Set, Union

from eagleops.remote import listeners, process_table, server_record
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.gpu_facts import Reading
from eagleops.remote.gpu_processes import read_processes
from eagleops.remote.gpus import Gpus
from eagleops.remote.servers import LIVING, describe, trees

Limits = Union[int, float, Mapping[str, float], None]


def require_name(name: str) -> None:
    """Refuses a name that cannot be a folder's."""
    if not server_record.is_name(name):
        raise Failure(
            "bad_name",
            "{!r} cannot name a server".format(name),
            way_out="Use up to 64 letters, digits, dots, underscores and hyphens, "
            "a letter or a digit first.",
            name=name,
        )


def require_free_name(context: Context, name: str) -> None:
    """Refuses a name whose server lives, or has left processes behind.

    Raises:
        Failure: ``server_exists``.
    """
    record = server_record.read(context, name)
    server = None if record is None else describe(record)
    if server is None or not (server["state"] in LIVING or server["tree"]):
        return
    if server["state"] in LIVING:
        problem = "a server {name} is {state} (PID {pid})".format(**server)
    else:
        pids = ", ".join(map(str, server["tree"]))
        problem = "the server {} is {}, but PIDs {} of it live".format(name, server["state"], pids)
    raise Failure(
        "server_exists",
        problem,
        way_out="Stop it first (eagleops stop --name {}), or launch under another --name.".format(
            name
        ),
        server=server,
    )


def require_free_port(context: Context, port: Optional[int]) -> None:
    """Refuses a port that somebody listens on, or that a server still loading will.

    Raises:
        Failure: ``port_taken``.
    """
    if port is None:
        return
    found = listeners.on_port(port)
    if found:
        facts = listeners.describe(found[0])
        server = trees(context).get(facts["pid"])
        whose = "" if server is None else ", of the server {}".format(server)
        raise _port_taken(
            "port {} is taken by {}{}".format(port, listeners.sentence(facts), whose),
            server,
            facts,
        )
    for record in server_record.read_all(context):
        if record.spec.get("port") == port and record.main() is not None:
            pid = record.process["pid"]
            facts = {"port": port, "address": None, "pid": pid}
            facts.update(title=process_table.title(pid), user=process_table.owner(pid))
            problem = "port {} belongs to the server {} (PID {}), which does not listen yet"
            raise _port_taken(problem.format(port, record.name, pid), record.name, facts)


def require_free_gpus(context: Context, limits: Limits, env: Mapping[str, str]) -> None:
    """Refuses GPUs that are in use: a server started on them dies late, and obscurely.

    Args:
        context: The operation's surroundings.
        limits: MiB in use up to which a GPU counts as free: one number for all, or one for
            each index; None asks nothing.
        env: The server's. Only the GPUs in its CUDA_VISIBLE_DEVICES matter.

    Raises:
        Failure: ``gpu_busy``.
    """
    if limits is None:
        return
    with Gpus(context) as gpus:
        reading = gpus.read()
    busy: List[Dict[str, Any]] = []
    for gpu in reading.gpus:
        limit = _limit(limits, gpu["index"])
        used = gpu["used_mib"]
        if limit is not None and used is not None and used > limit and _is_visible(gpu, env):
            busy.append({"index": gpu["index"], "used_mib": used, "limit_mib": limit})
    if busy:
        named = ", ".join("GPU {index}: {used_mib} MiB".format(**gpu) for gpu in busy)
        by = _holders(context, reading, {gpu["index"] for gpu in busy})
        raise Failure(
            "gpu_busy",
            "GPUs are in use ({}; up to {:g} MiB count as idle) by {}".format(
                named, busy[0]["limit_mib"], ", ".join(by) or "nobody that can be seen from here"
            ),
            way_out="See who holds them (eagleops status) or free them (eagleops reset-gpus).",
            gpus=busy,
        )


def _holders(context: Context, reading: Reading, indices: Set[int]) -> List[str]:
    found, _ = read_processes(context, reading)
    return [
        "PID {pid} ({title})".format(**dict(facts, title=listeners.shortened(facts["title"])))
        for facts in found
        if indices.intersection(facts["gpu_devices"])
    ]


def _limit(limits: Limits, index: int) -> Optional[float]:
    if isinstance(limits, (int, float)):
        return float(limits)
    return None if limits is None else limits.get(str(index))


def _is_visible(gpu: Mapping[str, Any], env: Mapping[str, str]) -> bool:
    visible = env.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return True
    devices = [device.strip() for device in visible.split(",")]
    uuid = gpu["uuid"] or ""
    named = any(device.startswith("GPU-") and uuid.startswith(device) for device in devices)
    return named or str(gpu["index"]) in devices


def _port_taken(problem: str, server: Optional[str], facts: Dict[str, Any]) -> Failure:
    if server is not None:
        way_out = "Stop it (eagleops stop --name {}), or give this one another port.".format(server)
    else:
        way_out = "End that process, or give this server another port."
    return Failure("port_taken", problem, way_out=way_out, server=server, **facts)
