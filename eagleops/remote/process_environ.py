"""One process's environment by all witnesses, as JSON; secrets as salted digests."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from eagleops.remote import environ_block, redact
from eagleops.remote.environ_block import Block
from eagleops.remote.live_environ import Live, read_live
from eagleops.remote.memory import CannotRead, ProcessMemory
from eagleops.remote.nccl_conf import ConfReader
from eagleops.remote.nccl_log_file import LogReader, Writer
from eagleops.remote.process_table import DEAD, parse_stat
from eagleops.remote.ptrace_rights import explain, rights_over

# Of these names every variable is told; of the rest, those that were asked for.
TOLD = re.compile(r"(NCCL|SGLANG|VLLM|CUDA)_")
MAX_ARGUMENTS = 256
MAX_ARGUMENT_CHARACTERS = 4096
ATTEMPTS = 3


class Mask:
    """Which variables travel, and as what.

    A secret's value becomes a digest with a salt of this one call: equal values can be told
    to be equal, and that is all that can be told.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self.salt = secrets.token_hex(16)

    def variables(self, variables: Mapping[bytes, bytes]) -> Dict[str, Any]:
        """Those that travel, as JSON."""
        decoded = ((_decode(name), value) for name, value in variables.items())
        return {
            name: self.value(name, _decode(value))
            for name, value in decoded
            if name in self._names or TOLD.match(name)
        }

    def value(self, name: str, value: str) -> Any:
        """``value``, or ``{"sha256": ...}`` for a secret."""
        if not redact.is_secret(name, value):
            return value
        key, content = self.salt.encode("ascii"), value.encode("utf-8", "surrogateescape")
        return {"sha256": hmac.new(key, content, hashlib.sha256).hexdigest()}


class Program(NamedTuple):
    """The program that a process runs: another after each exec.

    Attributes:
        stack: Where its stack began; with ``env_start`` it tells one exec from the next.
        env_start, env_end: The memory that ``/proc/PID/environ`` shows; 0 where hidden.
    """

    ppid: int
    state: str
    start_ticks: int
    stack: int
    arg_start: int
    arg_end: int
    env_start: int
    env_end: int


class Gone(Exception):
    """The process has ended, or holds no program any more."""


def program(pid: int) -> Program:
    """What ``/proc/PID/stat`` tells of it.

    Raises:
        Gone: if there is no such process, or it is a zombie.
    """
    try:
        content = _content(pid, "stat")
        known = parse_stat(content)
    except (OSError, ValueError):
        raise Gone from None
    if known.state in DEAD:
        raise Gone
    fields = content[content.rindex(b")") + 1 :].split()
    start_stack = int(fields[25])
    arg_start, arg_end, env_start, env_end = (int(field) for field in fields[45:49])
    return Program(
        known.ppid, known.state, known.start_ticks, start_stack,
        arg_start, arg_end, env_start, env_end,
    )  # fmt: skip


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
            cmdline = _content_or_empty(pid, "cmdline")
            block, why_blind = initial(pid, before, cmdline)
            live, refusal = live_or_why(pid)
            after = program(pid)
            if after.stack == before.stack and after.env_start == before.env_start:
                break
        else:
            live, refusal = None, ("it executes one program after another", "ask again")
        known = live.variables if live is not None else _all_of(block)
        shown = None if known is None else _shell_names(known)
        status = _status(pid)
        own_pid = int(status.get("NSpid", str(pid)).split()[-1])
        uid = int(status.get("Uid", "-1").split()[0])
        writer = Writer(pid, own_pid, _started_s(before.start_ticks), shown)
        arguments = _arguments(cmdline)
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
            "nccl": self._nccl(writer),
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

    def _nccl(self, writer: Writer) -> Dict[str, Any]:
        log = self._logs.of_process(writer)
        facts = None if log.facts is None else log.facts.to_json()
        return {"path": log.path, "why": log.why, "cut": log.cut, "facts": facts}

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
        content = _content(pid, "environ")
    except OSError as error:
        blind = Block(environ_block.UNREADABLE, {}, (), 0, 0)
        return blind, explain(rights_over(pid), error.errno or 0)
    region = known.env_end - known.env_start if known.env_start else None
    return environ_block.parse(content, region, _title_runs_on(known, cmdline)), ("", "")


def live_or_why(pid: int) -> Tuple[Optional[Live], Tuple[str, str]]:
    """The live environment, or why it cannot be read, and the way out."""
    try:
        with ProcessMemory(pid) as memory:
            auxv = _content(pid, "auxv")
            maps = _reader(pid, "maps")
            return read_live(memory, auxv, lambda at, size: _piece(pid, at, size), maps), ("", "")
    except PermissionError as error:
        return None, explain(rights_over(pid), error.errno or 0)
    except (CannotRead, OSError) as problem:
        return None, (str(problem), "")


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


def _shell_names(variables: Mapping[bytes, bytes]) -> Dict[str, str]:
    wanted = (b"HOME", b"NCCL_CONF_FILE", b"NCCL_DEBUG", b"NCCL_DEBUG_FILE")
    return {_decode(name): _decode(variables[name]) for name in wanted if name in variables}


def _arguments(cmdline: bytes) -> List[str]:
    words = cmdline.rstrip(b"\0").split(b"\0")[:MAX_ARGUMENTS]
    shown = redact.argv([_decode(word) for word in words])
    return [word[:MAX_ARGUMENT_CHARACTERS] for word in shown]


def _started_s(start_ticks: int) -> float:
    since_boot = start_ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot


def _status(pid: int) -> Dict[str, str]:
    lines = _content_or_empty(pid, "status").decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if line.startswith(("Uid:", "NSpid:")))
    return {name: value for name, _, value in pairs}


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _reader(pid: int, name: str) -> Callable[[], bytes]:
    return lambda: _content(pid, name)


def _content(pid: int, name: str) -> bytes:
    with open("/proc/{}/{}".format(pid, name), "rb") as file:
        return file.read()


def _content_or_empty(pid: int, name: str) -> bytes:
    try:
        return _content(pid, name)
    except OSError:
        return b""


def _piece(pid: int, at: int, size: int) -> bytes:
    descriptor = os.open("/proc/{}/exe".format(pid), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, size, at)
    finally:
        os.close(descriptor)
