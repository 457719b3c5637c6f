"""One process's environment by all witnesses, as JSON; secrets as salted digests."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from eagleops.remote import environ_block, redact
from eagleops.remote.environ_block import Block
from eagleops.remote.live_environ import Live, read_live
from eagleops.remote.mask import Mask, text_of
from eagleops.remote.memory import CannotRead, ProcessMemory, Starting
from eagleops.remote.nccl_conf import ConfReader
from eagleops.remote.nccl_log_file import LogReader, Writer
from eagleops.remote.program_image import image_of, library_paths
from eagleops.remote.ptrace_rights import explain, rights_over
from eagleops.remote.running_program import (
    Program,
    content,
    content_or_empty,
    executable_piece,
    program,
)

MAX_ARGUMENTS = 256
MAX_ARGUMENT_CHARACTERS = 4096
# A PyTorch that was built with its own NCCL holds it in libtorch_cuda.
NCCL_LIBRARY = re.compile(r"(nccl|libtorch_cuda|librccl)[^/]*\Z")
ATTEMPTS = 3
STARTING_S = 0.01


class Witnesses:
    """Reads process after process; what they share (files, a mask) is kept between them."""

    def __init__(self, mask: Mask, state_dir: Optional[str] = None) -> None:
        self._mask = mask
        self._logs = LogReader(state_dir)
        self._confs = ConfReader()

    def read(self, pid: int) -> Dict[str, Any]:
        """All that can be told of ``pid``: see :func:`eagleops.remote.environ.environ`.

        Raises:
            Gone: if it has ended.
        """
        for _ in range(ATTEMPTS):
            before = program(pid)
            cmdline = content_or_empty(pid, "cmdline")
            block, why_blind = initial(pid, before, cmdline)
            live, refusal = live_or_why(pid)
            after = program(pid)
            if after.stack == before.stack and after.env_start == before.env_start:
                break
        else:
            live, refusal = None, ("it executes one program after another", "ask again")
        known = live.variables if live is not None else _all_of(block)
        arguments = _arguments(cmdline)
        status = _status(pid)
        uid = int(status.get("Uid", "-1").split()[0])
        own_pid = int(status.get("NSpid", str(pid)).split()[-1])
        started_s = _started_s(before.start_ticks)
        shown = None if known is None else _nccl_settings(known)
        return {
            "pid": pid,
            "ppid": before.ppid,
            "start_ticks": before.start_ticks,
            "own_pid": own_pid,
            "uid": uid,
            "title": " ".join(arguments).strip(),
            "argv": arguments,
            "initial": self._initial(block, why_blind),
            "live": self._live(live, refusal),
            "nccl": self._nccl(Writer(pid, own_pid, started_s, shown), known or {}),
            "conf_files": self._conf_files(pid, uid, shown or {}),
        }

    def _initial(self, block: Block, why: Tuple[str, str]) -> Dict[str, Any]:
        return {
            "state": block.state,
            "size": block.size,
            "overwritten_bytes": block.overwritten_bytes,
            "variables": self._mask.variables(block.variables),
            "nameless": len(block.nameless),
            "why": why[0],
            "way_out": why[1],
        }

    def _live(self, live: Optional[Live], refusal: Tuple[str, str]) -> Dict[str, Any]:
        if live is None:
            return {"state": "unreadable", "why": refusal[0], "way_out": refusal[1]}
        return {
            "state": "read",
            "variables": self._mask.variables(live.variables),
            "nameless": len(live.nameless),
            "holder": live.holder,
        }

    def _nccl(self, writer: Writer, known: Mapping[bytes, bytes]) -> Dict[str, Any]:
        log = self._logs.of_process(writer)
        loaded: Optional[bool] = True
        if log.facts is None:
            concerned = self._mask.concerns("NCCL_", known)
            loaded = has_nccl(writer.pid) if concerned else None
        return {
            "path": log.path,
            "why": log.why,
            "cut": log.cut,
            "facts": None if log.facts is None else log.facts.to_json(),
            "loaded": loaded,
        }

    def _conf_files(self, pid: int, uid: int, variables: Mapping[str, str]) -> List[Dict[str, Any]]:
        conf_file, home = variables.get("NCCL_CONF_FILE"), variables.get("HOME")
        return [
            {
                "path": conf.path,
                "variables": self._mask.variables(conf.variables),
                "why": conf.problem,
            }
            for conf in self._confs.of_process(pid, uid, conf_file, home)
        ]


def initial(pid: int, known: Program, cmdline: bytes) -> Tuple[Block, Tuple[str, str]]:
    """The block of ``/proc/PID/environ``, and where it cannot be read why, and the way out."""
    try:
        block = content(pid, "environ")
    except OSError as error:
        blind = Block(environ_block.UNREADABLE, {}, (), 0, 0)
        return blind, explain(rights_over(pid), error.errno or 0)
    region = known.env_end - known.env_start if known.env_start else None
    return environ_block.parse(block, region, _title_runs_on(known, cmdline)), ("", "")


def live_or_why(pid: int) -> Tuple[Optional[Live], Tuple[str, str]]:
    """The live environment, or why it cannot be read, and the way out.

    A process that is just starting is given a moment.
    """
    for attempt in range(ATTEMPTS):
        try:
            return _live_now(pid), ("", "")
        except Starting as starting:
            why = str(starting)
        except PermissionError as error:
            return None, explain(rights_over(pid), error.errno or 0)
        except (CannotRead, OSError) as problem:
            return None, (str(problem), "")
        time.sleep(STARTING_S * attempt)
    return None, (why, "Ask again when it has started.")


def _live_now(pid: int) -> Live:
    with ProcessMemory(pid) as memory:
        return read_live(
            memory,
            content(pid, "auxv"),
            lambda at, size: executable_piece(pid, at, size),
            lambda: content(pid, "maps"),
        )


def has_nccl(pid: int) -> Optional[bool]:
    """Whether NCCL is loaded in the process, alone or as a part of PyTorch's own library.

    None where that cannot be told: its memory cannot be read, or it is statically linked.
    """
    try:
        with ProcessMemory(pid) as memory:
            image = image_of(
                memory, content(pid, "auxv"), lambda at, size: executable_piece(pid, at, size)
            )
            paths = library_paths(image)
    except (CannotRead, OSError):
        return None
    return None if paths is None else any(map(NCCL_LIBRARY.search, paths))


def _title_runs_on(known: Program, cmdline: bytes) -> Optional[bool]:
    """Whether the title is longer than the arguments were, and so fills the environment too.

    The kernel shows of argv just its memory, unless the last byte of that is no zero: then
    the whole title, wherever it ends.
    """
    if not known.arg_start or known.arg_end != known.env_start:
        return None
    return len(cmdline) != known.arg_end - known.arg_start or not cmdline.endswith(b"\0")


def _all_of(block: Block) -> Optional[Dict[bytes, bytes]]:
    return block.variables if block.state == environ_block.WHOLE else None


def _nccl_settings(variables: Mapping[bytes, bytes]) -> Dict[str, str]:
    wanted = (b"HOME", b"NCCL_CONF_FILE", b"NCCL_DEBUG", b"NCCL_DEBUG_FILE")
    return {text_of(name): text_of(variables[name]) for name in wanted if name in variables}


def _arguments(cmdline: bytes) -> List[str]:
    words = cmdline.rstrip(b"\0").split(b"\0")[:MAX_ARGUMENTS]
    shown = redact.argv([text_of(word) for word in words])
    return [word[:MAX_ARGUMENT_CHARACTERS] for word in shown]


def _started_s(start_ticks: int) -> float:
    since_boot = start_ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot


def _status(pid: int) -> Dict[str, str]:
    lines = content_or_empty(pid, "status").decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if line.startswith(("Uid:", "NSpid:")))
    return {name: value for name, _, value in pairs}
