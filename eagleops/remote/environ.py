"""Operation ``environ``: the environment of a whole server's processes, by three witnesses.

Read in one round trip, whatever the number of workers, and without stopping any of them.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Generator, List, Optional, Sequence, Tuple

from eagleops.remote import redact
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.mask import Mask
from eagleops.remote.process_environ import Witnesses
from eagleops.remote.process_table import descendants, stat, table
from eagleops.remote.running_program import Gone
from eagleops.remote.server_record import Record
from eagleops.remote.servers import LIVING, describe, find_record, listing

Step = Generator[Dict[str, Any], None, Dict[str, Any]]


def environ(
    context: Context,
    name: Optional[str] = None,
    pid: Optional[int] = None,
    names: Sequence[str] = (),
    secrets: Sequence[str] = (),
) -> Step:
    """Reads the environment of each process of a server.

    Args:
        context: The operation's surroundings.
        name: A launched server's; without ``name`` and ``pid`` the only one that lives.
        pid: The main process of a server that was launched otherwise: it and what is below.
        names: Variables to tell beside those that the server's record expects and all whose
            names begin with ``NCCL_``, ``SGLANG_``, ``VLLM_`` or ``CUDA_``.
        secrets: Those among them that are secrets whatever their names say, beside those whose
            values the record leaves out.

    Returns:
        ``server``: the SERVER dict, or None; ``spec``: ``expected`` (name to value),
        ``expected_workers`` and ``argv`` of its record, or None; ``salt`` of the digests;
        ``gone``: pids that ended meanwhile; and ``processes``, each with ``pid``, ``ppid``,
        ``start_ticks``, ``own_pid`` (as it counts itself), ``uid``, ``title``, ``argv`` and

        ``initial``
            ``state`` (:mod:`eagleops.remote.environ_block`), ``size`` and
            ``overwritten_bytes``, ``variables``, ``nameless`` (number of strings without a
            name), ``why`` it is unreadable and the ``way_out``.
        ``live``
            ``state`` ``read``, with ``variables``, ``nameless`` and ``holder`` (the object
            that holds ``environ``), or ``unreadable``, with ``why`` and ``way_out``.
        ``nccl``
            ``facts`` (:meth:`eagleops.remote.nccl_log.Facts.to_json`) from the log at
            ``path``, or None and ``why``; ``cut`` if the middle of a long log was not read;
            ``loaded``: whether the process has NCCL at all, None where that is not known.
        ``conf_files``
            Those that exist where the process sees files, strongest first: ``path``,
            ``variables``, ``why`` one cannot be read.

        A value is text, or ``{"sha256": ...}`` for a secret: HMAC-SHA256 of the value, in
        UTF-8, keyed with the salt's ASCII text.

    Raises:
        Failure: ``no_such_server``, ``which_server``, ``not_running`` or ``no_such_process``.
    """
    record = None if pid is not None else _record(context, name)
    server = None if record is None else describe(record)
    pids = _below(pid) if server is None else _living(server)
    yield {"event": "reading", "processes": len(pids)}
    expected = {} if record is None else record.spec.get("expected") or {}
    left_out = [name for name, value in expected.items() if redact.REDACTED in (value or "")]
    mask = Mask([*expected, *names], [*left_out, *secrets])
    witnesses = Witnesses(mask, None if server is None else server["state_dir"])
    found, gone = _read_all(context, witnesses, pids)
    return {
        "server": server,
        "spec": None if record is None else _spec(record, expected),
        "salt": mask.salt,
        "processes": found,
        "gone": gone,
    }


def _record(context: Context, name: Optional[str]) -> Record:
    if name is not None:
        return find_record(context, name)
    known = listing(context, probe_limit_s=0.0)
    living = [server["name"] for server in known if server["state"] in LIVING]
    if len(living) == 1:
        return find_record(context, living[0])
    if living:
        raise Failure(
            "which_server",
            "which server? {}".format(", ".join(living)),
            way_out="Name one: --name NAME.",
            servers=living,
        )
    raise Failure(
        "no_such_server",
        "no launched server runs here",
        way_out="Launch one (eagleops launch --profile P), or name a process: --pid PID.",
        servers=[server["name"] for server in known],
    )


def _living(server: Dict[str, Any]) -> List[int]:
    main: int = server["pid"]
    pids: List[int] = sorted(server["tree"], key=lambda pid: (pid != main, pid))
    if not pids:
        raise Failure(
            "not_running",
            "no process of the server {} lives: it is {}".format(server["name"], server["state"]),
            way_out="Its log: {}".format(server["log"]),
            server=server,
        )
    return pids


def _below(pid: Optional[int]) -> List[int]:
    root = None if pid is None else stat(pid)
    if root is None or not root.alive:
        raise Failure("no_such_process", "there is no process {}".format(pid), pid=pid)
    below = descendants(table(), [root.pid]) - {os.getpid()}
    return [root.pid, *sorted(below)]


def _spec(record: Record, expected: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "expected": expected,
        "expected_workers": record.spec.get("expected_workers") or {},
        "argv": record.spec.get("argv") or [],
    }


def _read_all(
    context: Context, witnesses: Witnesses, pids: Sequence[int]
) -> Tuple[List[Dict[str, Any]], List[int]]:
    found, gone = [], []
    for pid in pids:
        context.check()
        try:
            found.append(witnesses.read(pid))
        except Gone:
            gone.append(pid)
    return found, gone
