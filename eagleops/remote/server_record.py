"""A launched server as its state folder tells it.

``<state_home or $XDG_STATE_HOME or ~/.local/state>/eagleops/servers/<name>/``

==================  ============================================================
spec.json           what was launched, secrets redacted
process.json        the main process and the supervisor: pid, start time, boot
ready.json          when it was seen ready
stopping.json       when somebody asked it to stop
exit.json           its exit status or signal
server.log          its stdout and stderr
nccl.<pid>.log      NCCL's own log of each process
supervisor.py       the program that runs it
previous/           the same of the run before
==================  ============================================================

Every record carries the launch's id; one of another launch counts as absent.
"""

from __future__ import annotations

import functools
import json
import os
import pwd
import re
import time
from typing import Any, Dict, List, Optional

from eagleops.remote import supervisor
from eagleops.remote.context import Context
from eagleops.remote.process_table import Stat, stat

SPEC = "spec.json"
PROCESS = supervisor.PROCESS
READY = "ready.json"
STOPPING = "stopping.json"
EXIT = supervisor.EXIT
LOG = supervisor.LOG
PREVIOUS = "previous"
POLL_S = 0.005

_FIELDS = {
    "launch_id",
    "pid",
    "start_ticks",
    "boot_id",
    "pid_ns",
    "supervisor_pid",
    "supervisor_start_ticks",
    "subreaper",
    "started_utc",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


class Record:
    """One server's state folder, read once.

    Attributes:
        name: The server's.
        folder: Its state folder.
        process: process.json.
        spec, ready, stopping, exit: The other records of this launch; None where absent.
    """

    def __init__(self, name: str, folder: str, process: Dict[str, Any]) -> None:
        self.name = name
        self.folder = folder
        self.process = process
        self.spec: Dict[str, Any] = self._of_this_launch(SPEC) or {}
        self.ready = self._of_this_launch(READY)
        self.stopping = self._of_this_launch(STOPPING)
        self.exit = self._of_this_launch(EXIT)

    @property
    def launch_id(self) -> str:
        """The launch's own id, in hex."""
        launch_id: str = self.process["launch_id"]
        return launch_id

    @property
    def log(self) -> str:
        """The path of its log."""
        return os.path.join(self.folder, LOG)

    @property
    def here(self) -> bool:
        """Whether its pids mean anything here: same boot, same PID namespace."""
        here = (boot_id(), pid_namespace())
        return here == (self.process["boot_id"], self.process["pid_ns"])

    def main(self) -> Optional[Stat]:
        """Its main process; None where that has ended, whoever has its pid now."""
        return self._living(self.process["pid"], self.process["start_ticks"])

    def supervisor(self) -> Optional[Stat]:
        """Its supervisor; None where that has ended."""
        process = self.process
        return self._living(process["supervisor_pid"], process["supervisor_start_ticks"])

    def age_s(self) -> float:
        """Seconds since the main process was started, to a clock tick (usually 10 ms)."""
        started_s: float = self.process["start_ticks"] / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - started_s

    def reread_exit(self) -> Optional[Dict[str, Any]]:
        """exit.json as it stands now."""
        self.exit = self._of_this_launch(EXIT)
        return self.exit

    def await_exit(self, limit_s: float) -> None:
        """Waits for exit.json while the supervisor is about to write it."""
        deadline = time.monotonic() + limit_s
        while self.reread_exit() is None and self.supervisor() is not None:
            if time.monotonic() >= deadline:
                return
            time.sleep(POLL_S)
        self.reread_exit()

    def write(self, record: str, content: Dict[str, Any]) -> None:
        """Writes a record of this launch, unless the folder is another launch's by now.

        Raises:
            OSError: if it cannot be written.
        """
        current = _read(os.path.join(self.folder, PROCESS)) or {}
        if current.get("launch_id") == self.launch_id:
            supervisor.write_json(self.folder, record, dict(content, launch_id=self.launch_id))

    def _living(self, pid: int, start_ticks: int) -> Optional[Stat]:
        if not self.here:
            return None
        found = stat(pid)
        if found is None or found.start_ticks != start_ticks or not found.alive:
            return None
        return found

    def _of_this_launch(self, record: str) -> Optional[Dict[str, Any]]:
        content = _read(os.path.join(self.folder, record))
        if content is None or content.get("launch_id") != self.process["launch_id"]:
            return None
        return content


def servers_home(context: Context) -> str:
    """The folder of all state folders."""
    state_home = context.options["state_home"] or os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a relative path is to be ignored. It would mean another folder by
    # each way in, as each begins elsewhere.
    if not os.path.isabs(state_home):
        state_home = os.path.join(home(), ".local", "state")
    return os.path.join(state_home, "eagleops", "servers")


@functools.lru_cache(maxsize=None)
def boot_id() -> str:
    """The kernel's name of this boot; empty where it tells none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


@functools.lru_cache(maxsize=None)
def pid_namespace() -> int:
    """The inode of this process's PID namespace; 0 where it cannot be read."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def home() -> str:
    """The home directory of this user, as the password database has it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return os.environ.get("HOME") or "/"


def is_name(name: str) -> bool:
    """Whether a server may be called so: it is also a folder's name."""
    return _NAME.match(name) is not None


def names(context: Context) -> List[str]:
    """Every name that has a state folder, sorted."""
    try:
        return sorted(name for name in os.listdir(servers_home(context)) if is_name(name))
    except OSError:
        return []


def read(context: Context, name: str) -> Optional[Record]:
    """The server ``name``; None where none was started under that name."""
    folder = os.path.join(servers_home(context), name)
    process = _read(os.path.join(folder, PROCESS)) if is_name(name) else None
    if process is None or not set(process) >= _FIELDS:
        return None
    return Record(name, folder, process)


def read_all(context: Context) -> List[Record]:
    """Every server that was started and whose state folder is still there."""
    found = (read(context, name) for name in names(context))
    return [record for record in found if record is not None]


def _read(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            content = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
