"""Operation ``reserve``: one launch at a time on a machine.

A launch resets the GPUs before it starts its server: two at once would kill one another's.
The reservation is a lock that the session's process holds until ``spawn`` has ended, or
until the process itself has, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Dict, Generator, Optional

from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.servers import LIVING, find_server, servers_home


class _Held:
    """The lock that this process holds, if it holds one."""

    descriptor: Optional[int] = None


def reserve(
    context: Context, name: str, launch_id: str
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Takes the machine for the launch of ``name``.

    Raises:
        Failure: ``launch_in_progress`` while another launch holds the machine,
            ``server_exists`` if a server of that name lives.
    """
    yield {"event": "reserving"}
    home = servers_home(context)
    os.makedirs(home, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(home, ".launch.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = _holder(descriptor)
        os.close(descriptor)
        raise Failure(
            "launch_in_progress",
            "a launch of {} is in progress (PID {})".format(holder.get("name"), holder.get("pid")),
            way_out="Wait for it: eagleops status.",
            holder=holder,
        ) from None
    try:
        _refuse_twin(context, name)
    except BaseException:
        os.close(descriptor)
        raise
    os.ftruncate(descriptor, 0)
    note = {"name": name, "launch_id": launch_id, "pid": os.getpid()}
    os.pwrite(descriptor, json.dumps(note).encode("ascii"), 0)
    release()
    _Held.descriptor = descriptor
    return {"reserved": name}


def release() -> None:
    """Gives the machine back, if this process had taken it."""
    if _Held.descriptor is not None:
        os.close(_Held.descriptor)
        _Held.descriptor = None


def _holder(descriptor: int) -> Dict[str, Any]:
    try:
        holder: Dict[str, Any] = json.loads(os.pread(descriptor, 4096, 0).decode("ascii"))
    except ValueError:  # it has the lock and has not written yet
        holder = {}
    return holder


def _refuse_twin(context: Context, name: str) -> None:
    server = find_server(context, name)
    if server is not None and server["state"] in LIVING:
        raise Failure(
            "server_exists",
            "a server {} is {} (PID {})".format(name, server["state"], server["pid"]),
            way_out="Stop it first (eagleops stop --name {}), or launch under "
            "another --name.".format(name),
            server=server,
        )
