"""The witness ``effective``: NCCL's own log, read by the process that wrote each line.

Wording as of NCCL 2.18 to 2.30. What NCCL says is kept apart by what it proves:

- ``X set by environment to V``: NCCL read V. An integer is the number that it parsed, and
  has a full stop behind it; other values are the text as it was.
- ``Invalid X V ...``, ``Invalid value V for X ...``, ``Unrecognized element token``: NCCL
  refused what it had read.
- no line: nothing. NCCL reads most variables only where it needs them.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

MAX_TEXT = 300
MAX_KEPT = 32

_LINE = re.compile(
    r"(?:^|\s)[^\s:]+:(?P<pid>\d{1,9}):\d{1,9} (?:\[-?\d+\] )?"
    r"(?:\S+:\d+ (?:\([^)]*\) )?)?NCCL (?P<level>INFO|WARN) (?P<text>.*)"
)
_READ = re.compile(r"(NCCL_\w+) set by environment to (.*)")
_NUMBER = re.compile(r"(-?\d+)\.\Z")
_REFUSED = re.compile(r"Invalid (?:value .* for )?(NCCL_\w+)")
_TOKEN = re.compile(r'Unrecognized \w+ token "(.*)" when parsing "(.*)"')
_UNUSABLE = re.compile(r"No algorithm/protocol available")
_WAS_SET = re.compile(r"(NCCL_\w+) was set to")
_CHANNELS = re.compile(r"User asked for a (minimum|maximum) of -?\d+ channels")
_VERSION = re.compile(r"NCCL version (\S+)")
_INIT = re.compile(r"comm 0x[0-9a-f]+ rank (\d+) nranks (\d+) .*- Init (START|COMPLETE)")
_COLL_CHANNELS = re.compile(r"(\d+) coll channels")
_VIA = re.compile(r"Channel \d+(?:/\d+)? : .* via (\S+)")
_MATRIX = "Enabled NCCL Func/Proto/Algo Matrix:"
_MATRIX_ROW = re.compile(r"\s*(\w+) \|([^|]*)\|([^|]*)")

# These are logged whatever NCCL_DEBUG_SUBSYS says, so they do not show that ENV is on.
LOGGED_ALWAYS = frozenset(("NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_COLLNET_ENABLE"))
TOKEN_LISTS = ("NCCL_ALGO", "NCCL_PROTO")


class Facts:
    """What one process's NCCL has said so far."""

    def __init__(self) -> None:
        self.versions: List[str] = []
        self.values: Dict[str, List[str]] = {}
        self.numbers: Set[str] = set()
        self.refusals: Dict[str, List[str]] = {}
        self.warnings: List[str] = []
        self.ranks: Set[int] = set()
        self.started: List[int] = []
        self.complete: List[int] = []
        self.env_logged = False
        self.coll_channels: Optional[int] = None
        self.transports: Dict[str, int] = {}
        self.matrix: Dict[str, Dict[str, List[str]]] = {}

    def to_json(self) -> Dict[str, Any]:
        """As the operation returns it.

        ``read``: name to ``values`` (in order, as text) and ``number`` (whether NCCL parsed a
        number); ``comms_started`` and ``comms_complete``: number of ranks of each
        communicator; ``env_logged``: whether the log shows that ENV was in its subsystems.
        """
        return {
            "versions": self.versions,
            "read": {
                name: {"values": values, "number": name in self.numbers}
                for name, values in self.values.items()
            },
            "refused": self.refusals,
            "warnings": self.warnings,
            "comms_started": self.started,
            "comms_complete": self.complete,
            "ranks": sorted(self.ranks),
            "env_logged": self.env_logged,
            "coll_channels": self.coll_channels,
            "transports": self.transports,
            "matrix": self.matrix,
        }

    def take(self, level: str, text: str) -> None:
        """Takes in the text of one line."""
        text = text.rstrip()[:MAX_TEXT]
        read = _READ.match(text)
        if read:
            self._take_read(read[1], read[2])
        elif not self._take_refusal(text):
            self._take_progress(text)
        if level == "WARN":
            _keep(self.warnings, text)

    def _take_read(self, name: str, value: str) -> None:
        number = _NUMBER.match(value)
        if number:
            self.numbers.add(name)
        values = self.values.setdefault(name, [])
        if len(values) < 4 * MAX_KEPT:
            values.append(number[1] if number else value)
        self.env_logged = self.env_logged or name not in LOGGED_ALWAYS

    def _take_refusal(self, text: str) -> bool:
        names = [match[1] for match in (_REFUSED.search(text),) if match]
        channels = _CHANNELS.search(text)
        if channels:
            names.append("NCCL_{}_NCHANNELS".format(channels[1][:3].upper()))
        token = _TOKEN.search(text)
        if token:
            names.extend(
                name
                for name in TOKEN_LISTS
                if name in self.values and token[1] in self.values[name][-1]
            )
        if _UNUSABLE.search(text):
            names.extend(_WAS_SET.findall(text))
        for name in names:
            _keep(self.refusals.setdefault(name, []), text)
        return bool(names)

    def _take_progress(self, text: str) -> None:
        init = _INIT.search(text)
        if init:
            sizes = self.started if init[3] == "START" else self.complete
            sizes.append(int(init[2]))
            self.ranks.add(int(init[1]))
            return
        version, channels, via = _VERSION.search(text), _COLL_CHANNELS.match(text), None
        if version:
            _keep(self.versions, version[1])
        elif channels:
            self.coll_channels = int(channels[1])
        elif text.startswith("Channel "):
            via = _VIA.match(text)
        elif text.startswith(_MATRIX):
            self.env_logged = True
        if via:
            self.transports[via[1]] = self.transports.get(via[1], 0) + 1


def parse(lines: Iterable[str], pids: Optional[Set[int]] = None) -> Dict[int, Facts]:
    """The facts by PID.

    Args:
        lines: Of a log; also of a server's log where NCCL's lines stand among others.
        pids: The processes that matter, as they count themselves; None for all.
    """
    found: Dict[int, Facts] = {}
    table: Optional[_Table] = None
    for line in lines:
        match = _LINE.search(line) if "NCCL " in line else None
        if match is None:
            if table is not None and not table.take(line):
                table = None
            continue
        pid = int(match["pid"])
        table = None
        if pids is not None and pid not in pids:
            continue
        facts = found.setdefault(pid, Facts())
        facts.take(match["level"], match["text"])
        if match["text"].startswith(_MATRIX):
            table = _Table(facts)
    return found


class _Table:
    """The matrix of what is enabled: lines without a prefix, behind one that has it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._headings: Tuple[List[str], List[str]] = ([], [])

    def take(self, line: str) -> bool:
        row = _MATRIX_ROW.match(line)
        if row is None:
            return False
        cells = (row[2].split(), row[3].split())
        if row[1] == "Function":
            self._headings = cells
        else:
            self._facts.matrix[row[1]] = {
                "protocols": _enabled(self._headings[0], cells[0]),
                "algorithms": _enabled(self._headings[1], cells[1]),
            }
        return True


def _enabled(names: List[str], cells: List[str]) -> List[str]:
    return [names[at] for at, cell in enumerate(cells[: len(names)]) if cell != "0"]


def _keep(kept: List[str], text: str) -> None:
    if text not in kept and len(kept) < MAX_KEPT:
        kept.append(text)
