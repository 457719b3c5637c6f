"""Operation ``health``: what the GPUs' counters and the kernel log tell of faults.

Looks, and changes nothing. What is judged of it stands in
:mod:`eagleops.workflows.nightly.gpu_health`.
"""

from __future__ import annotations

from typing import Any, Dict, Generator, Optional

from eagleops.remote import command, driver_faults, health_facts, kernel_log
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.nvidia_smi import NvidiaSmi, problem_of
from eagleops.remote.smi_tree import LIMIT_S, QUERY, said
from eagleops.remote.supervisor import now_utc
from eagleops.remote.utc import seconds

_UNREAD: Dict[str, Any] = {
    "source": "none",
    "problem": None,
    "driver_version": None,
    "gpus": [],
}


def health(
    context: Context, since_utc: Optional[str] = None, gpus: bool = True
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Reads every GPU's health, and the Xid errors in the kernel log.

    Args:
        context: The operation's surroundings.
        since_utc: Xid errors before this time of the machine's clock (RFC 3339) are left out.
        gpus: Whether to read the GPUs; without it only the log is looked at.

    Returns:
        ``time_utc`` of the machine, ``source`` (``nvidia-smi`` or ``none``), ``problem`` (what
        the driver says), ``driver_version``, ``gpus`` (:func:`eagleops.remote.health_facts.parse`),
        ``xids`` (:func:`eagleops.remote.kernel_log.xids`), and ``kernel_log``: ``source``
        (``kmsg``, ``journal``, ``dmesg`` or ``none``), ``problem`` (why it could not be read, or
        does not reach back), ``from_utc`` (from when on it holds), and ``lines``. None in any
        field means that it was not told.

    Raises:
        Failure: ``bad_argument`` for a ``since_utc`` that is no such time.
    """
    since_s = None if since_utc is None else seconds(since_utc)
    yield {"event": "reading"}
    time_utc = now_utc()
    log = kernel_log.xids(context, since_s)
    yield {"event": "reading_gpus"}
    facts = _gpus(context) if gpus else dict(_UNREAD, problem="not asked for")
    return {"time_utc": time_utc, **facts, **log}


def _gpus(context: Context) -> Dict[str, Any]:
    facts = dict(_UNREAD)
    program = command.find(context, "nvidia-smi")
    if program is None:
        return dict(facts, problem="no nvidia-smi on PATH")
    try:
        finished = command.run(context, [program, *QUERY], LIMIT_S)
    except Failure as failure:
        return dict(facts, problem=failure.message)
    document, beside = health_facts.parse(finished.stdout)
    # The document counts no GPUs: where one is lost, the others keep their index.
    short = NvidiaSmi(context, program).state()
    indices = {gpu["uuid"]: gpu["index"] for gpu in short.gpus if gpu["uuid"]}
    lines = beside + finished.stderr.splitlines()
    problem = short.problem or problem_of(
        finished.exit_status, lines, driver_faults.module_version()
    )
    if not document.gpus and problem is None:
        problem = "nvidia-smi -q -x told of no GPU: " + said(lines)
    return dict(
        facts,
        source="nvidia-smi" if document.gpus else "none",
        problem=problem,
        driver_version=document.driver_version,
        gpus=[dict(gpu, index=indices.get(gpu["uuid"], gpu["index"])) for gpu in document.gpus],
    )
