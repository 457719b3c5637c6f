"""Operation ``reserve``: one launch at a time on a machine.

A launch resets the GPUs before it starts its server: two at once would kill one another's.
A reservation is a note of the launch's id. It ends with ``spawn`` of that launch, with
operation ``release``, or with the process that made it: the client's session over there,
however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Dict, Generator, Optional

from eagleops.remote import (
    launch_lock,
    launch_order,
    preflight,
    process_table,
    server_record,
    supervisor,
)
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.servers import LIVING, find_server

NOTE = ".launch.json"
Note = Dict[str, Any]


def reserve(
    context: Context, name: str, launch_id: str, launch: Optional[Dict[str, Any]] = None
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Takes the machine for the launch of ``name``.

    Args:
        context: The operation's surroundings.
        name: The server's.
        launch_id: The launch's own.
        launch: What ``spawn`` will be sent. A program that is not there is then told before a
            reset has ended anything. Not so a port that is taken: whoever has it may be what
            the reset is for.

    Raises:
        Failure: ``bad_name``, ``launch_in_progress`` while another launch holds the machine,
            ``server_exists`` if a server of that name lives, ``spawn_failed`` where the server
            cannot be started or no state can be kept.
    """
    yield {"event": "reserving"}
    preflight.require_name(name)
    if launch is not None:
        folder = os.path.join(server_record.servers_home(context), name)
        env = launch_order.environment(context, name, launch, folder)
        launch_order.program(launch["argv"], env, launch_order.folder(launch))
    lock = launch_lock.take(context)
    try:
        holder = _holder(context)
        if holder is not None and holder["launch_id"] != launch_id:
            raise Failure(
                "launch_in_progress",
                "a launch of {name} is in progress since {since_utc} (PID {pid})".format(**holder),
                way_out="Wait for it: eagleops status.",
                holder=holder,
            )
        _refuse_twin(context, name)
        note = {
            "name": name,
            "launch_id": launch_id,
            "pid": os.getpid(),
            "start_ticks": supervisor.start_ticks(os.getpid()),
            "boot_id": server_record.boot_id(),
            "pid_ns": server_record.pid_namespace(),
            "since_utc": supervisor.now_utc(),
        }
        supervisor.write_json(server_record.servers_home(context), NOTE, note)
    except OSError as error:
        problem = "no reservation can be written: {}".format(error.strerror)
        raise Failure("spawn_failed", problem) from None
    finally:
        os.close(lock)
    return {"reserved": name}


def give_back(context: Context, launch_id: str) -> bool:
    """Ends the reservation of that launch; whether it had one."""
    note = _read(context)
    if note is None or note.get("launch_id") != launch_id:
        return False
    # Nobody else writes over this note while its process lives, and that is the client's.
    with contextlib.suppress(OSError):
        os.unlink(_path(context))
    return True


def _holder(context: Context) -> Optional[Note]:
    """The reservation that holds; None where there is none, or its process has ended."""
    note = _read(context)
    here = {"boot_id": server_record.boot_id(), "pid_ns": server_record.pid_namespace()}
    if note is None or any(note.get(key) != value for key, value in here.items()):
        return None
    stat = process_table.stat(note["pid"])
    if stat is None or not stat.alive or stat.start_ticks != note["start_ticks"]:
        return None
    return note


def _read(context: Context) -> Optional[Note]:
    try:
        with open(_path(context), "rb") as file:
            note = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return note if isinstance(note, dict) else None


def _path(context: Context) -> str:
    return os.path.join(server_record.servers_home(context), NOTE)


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
