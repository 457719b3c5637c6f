"""GPUs as ``nvidia-smi`` tells them: what to ask, and how to read the answer.

The vendor promises no stable output, so the reading is by position and tolerant: an
unknown field must not lose the known ones, a fault of one GPU not the others, and a value
that is not told is None, never 0. Whole-command failures are printed on stdout, with NVML's
return code as exit status.
"""

from __future__ import annotations

import re
from typing import ClassVar, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple, Union

from eagleops.remote import command, driver_faults
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.gpu_facts import Facts, Reading, clock_reasons, unread

LIMIT_S = 10.0
# A refusal costs 40 ms and, but for a very old driver, comes once a session if at all.
_TRIES = 2 * 17

# What each fact is called by nvidia-smi, the spelling that most drivers know first. The
# name comes last: it is the one value that could hold a comma.
FIELDS: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("index", ("index",)),
    ("uuid", ("uuid", "gpu_uuid")),
    ("bus_id", ("pci.bus_id", "gpu_bus_id")),
    ("driver_version", ("driver_version",)),
    ("used_mib", ("memory.used",)),
    ("total_mib", ("memory.total",)),
    ("reserved_mib", ("memory.reserved",)),
    ("temperature_c", ("temperature.gpu",)),
    ("power_w", ("power.draw",)),
    ("power_limit_w", ("power.limit",)),
    ("sm_clock_mhz", ("clocks.sm", "clocks.current.sm")),
    ("mem_clock_mhz", ("clocks.mem", "clocks.current.memory")),
    ("utilization_pct", ("utilization.gpu",)),
    ("throttle_reasons", ("clocks_throttle_reasons.active", "clocks_event_reasons.active")),
    ("pcie_gen", ("pcie.link.gen.current", "pcie.link.gen.gpucurrent")),
    ("pcie_width", ("pcie.link.width.current",)),
    ("name", ("name", "gpu_name")),
)
_TEXTS = frozenset({"uuid", "bus_id", "driver_version", "name"})
_FRACTIONS = frozenset({"power_w", "power_limit_w"})
_ABSENT = frozenset({"", "n/a", "err!", "unknown error", "not supported"})
_CSV = "--format=csv,noheader,nounits"

Question = Sequence[Tuple[str, str]]
# Every GPU driver since 2013 knows these.
_PLAIN_QUESTION: Question = (
    ("index", "index"),
    ("uuid", "uuid"),
    ("used_mib", "memory.used"),
    ("total_mib", "memory.total"),
    ("name", "name"),
)
MEMORY_QUESTION: Question = (("index", "index"), ("used_mib", "memory.used"))


class ComputeApp(NamedTuple):
    """A process in a GPU's list; ``used_mib`` is None where it is not told."""

    uuid: str
    pid: int
    used_mib: Optional[int]


def question(known: Optional[FrozenSet[str]] = None) -> Question:
    """The fields to ask for: (fact, field) pairs, of those in ``known`` where it is given."""
    if known is None:
        return tuple((fact, names[0]) for fact, names in FIELDS)
    spoken = ((fact, [name for name in names if name in known]) for fact, names in FIELDS)
    return tuple((fact, names[0]) for fact, names in spoken if names)


def without(asked: Question, field: str) -> Question:
    """``asked`` with the next spelling in place of ``field``; without its fact if it has none."""
    later = {names[0]: names[1] for _, names in FIELDS if names[1:]}
    renamed = ((fact, later.get(name) if name == field else name) for fact, name in asked)
    return tuple((fact, name) for fact, name in renamed if name is not None)


def parse_unknown_field(text: str) -> Optional[str]:
    """The field that nvidia-smi refuses; an empty string where it does not say which."""
    found = re.search(r'(?:field "([^"\n]*)" )?is not a valid field', text, re.IGNORECASE)
    return (found.group(1) or "") if found else None


def parse_known_fields(text: str) -> FrozenSet[str]:
    """The field names in the output of ``--help-query-gpu``, every spelling of each."""
    heads = re.findall(r'^\s*("[^"\n]+"(?:\s+or\s+"[^"\n]+")*)\s*$', text, re.MULTILINE)
    return frozenset(name for head in heads for name in re.findall(r'"([^"]+)"', head))


def told(text: str) -> Optional[str]:
    """``text`` as it stands, or None where it is one of the words for "not told".

    Anything in square brackets is such a word: ``[N/A]``, ``[Insufficient Permissions]``,
    ``[GPU is lost]``, ``[Requested functionality has been deprecated]``, and what comes next.
    """
    stripped = text.strip()
    bracketed = stripped.startswith("[") and stripped.endswith("]")
    return None if bracketed or stripped.lower() in _ABSENT else stripped


def number(text: str) -> Optional[float]:
    """The number that ``text`` begins with, its unit left out; None where it has none."""
    found = re.fullmatch(r"(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)(?:\s*[A-Za-z%]+)?", text.strip())
    return float(found.group(1)) if found else None


def parse_gpus(text: str, asked: Question) -> Tuple[List[Facts], List[str]]:
    """Reads rows of ``--query-gpu`` that were asked with ``asked``.

    Returns:
        The GPUs by index, with ``driver_version`` still among their facts, and the lines
        that are no GPU: nvidia-smi tells its faults in between.
    """
    gpus: Dict[int, Facts] = {}
    rest = []
    for line in filter(str.strip, text.splitlines()):
        gpu = _parse_gpu(line, asked)
        if gpu is None:
            rest.append(line)
        else:
            gpus.setdefault(gpu["index"], gpu)
    return [gpus[index] for index in sorted(gpus)], rest


def _parse_gpu(line: str, asked: Question) -> Optional[Facts]:
    cells = line.split(",", len(asked) - 1)
    index = cells[0].strip()
    if len(cells) != len(asked) or not re.fullmatch(r"[0-9]{1,4}", index):
        return None
    gpu = unread(int(index))
    for (fact, _), cell in list(zip(asked, cells))[1:]:  # noqa: B905 - Python 3.8 has no strict
        gpu[fact] = _fact(fact, cell)
    return gpu


def _fact(fact: str, cell: str) -> object:
    text = told(cell)
    if text is None:
        return None
    if fact == "throttle_reasons":
        mask = re.fullmatch(r"0[xX]([0-9a-fA-F]{1,16})", text)
        return clock_reasons(int(mask.group(1), 16)) if mask else None
    if fact in _TEXTS:
        return text
    value = number(text)
    return value if value is None or fact in _FRACTIONS else int(value)


def parse_compute_apps(text: str) -> List[ComputeApp]:
    """Reads rows of ``--query-compute-apps`` that begin with uuid and PID and end with memory.

    What stands between them, for example a process name with commas, and any other line
    is left out.
    """
    apps = []
    for line in text.splitlines():
        found = re.fullmatch(r"([^,]+),\s*([1-9][0-9]{0,9})\s*,(?:.*,)?([^,]*)", line)
        if found:
            mib = number(found.group(3))
            used_mib = None if mib is None else int(mib)
            apps.append(ComputeApp(found.group(1).strip(), int(found.group(2)), used_mib))
    return apps


def problem_of(
    exit_status: int, lines: Sequence[str], module: Optional[str] = None
) -> Optional[str]:
    """What lines that are no answer, and the exit status, tell of the driver; None for nothing.

    Args:
        exit_status: nvidia-smi's.
        lines: What it printed beside its answer, on both streams.
        module: The version of the loaded kernel module, where it is known.
    """
    sentences = driver_faults.explain_all(lines, module)
    if sentences:
        return " ".join(sentences)
    if exit_status == 0:
        return None
    first = next(iter(lines), "").strip() or "no output"
    return "nvidia-smi ended with exit status {}: {}".format(exit_status, first)


class NvidiaSmi:
    """One machine's nvidia-smi, asked anew for each reading.

    Args:
        context: The operation's surroundings.
        program: Its path.
    """

    # By program, what it knows: a session asks often.
    _learned: ClassVar[Dict[str, Question]] = {}

    def __init__(self, context: Context, program: str) -> None:
        self._context = context
        self._program = program

    def read(self) -> Reading:
        """Every fact of every GPU, with the processes in its list."""
        reading = self.state()
        return self._with_processes(reading) if reading.gpus else reading

    def state(self, limit_s: float = LIMIT_S) -> Reading:
        """Every fact of every GPU but its processes: one nvidia-smi, once its fields are known."""
        asked = self._learned.get(self._program, question())
        for _ in range(_TRIES):
            reading = self._ask(asked, limit_s)
            if not isinstance(reading, str):
                self._learned[self._program] = asked
                return reading
            known = any(reading == field for _, field in asked)
            narrower = without(asked, reading) if known else self._learn()
            asked = _PLAIN_QUESTION if narrower == asked else narrower
        return Reading([], "nvidia-smi refuses every question after {} tries".format(_TRIES))

    def memory(self, limit_s: float = LIMIT_S) -> Reading:
        """``used_mib`` of each GPU, all else unread: the cheapest question there is."""
        reading = self._ask(MEMORY_QUESTION, limit_s)
        return Reading([], "nvidia-smi tells no memory") if isinstance(reading, str) else reading

    def _ask(self, asked: Question, limit_s: float = LIMIT_S) -> Union[Reading, str]:
        """A reading, or the field that this nvidia-smi does not know."""
        fields = ",".join(field for _, field in asked)
        try:
            finished = self._run("--query-gpu=" + fields, _CSV, limit_s=limit_s)
        except Failure as failure:
            return Reading([], _no_answer(failure))
        gpus, rest = parse_gpus(finished.stdout, asked)
        rest += finished.stderr.splitlines()
        refused = parse_unknown_field("\n".join(rest))
        if refused is not None:
            return refused
        problem = problem_of(finished.exit_status, rest, driver_faults.module_version())
        if not gpus and problem is None:
            problem = "nvidia-smi listed no GPU: " + (" ".join(rest).strip() or "no output")
        versions = [gpu.pop("driver_version", None) for gpu in gpus]
        return Reading(gpus, problem, next(filter(None, versions), None))

    def _learn(self) -> Question:
        """What to ask going by the help, where the refusal does not name a field of ours."""
        try:
            known = parse_known_fields(self._run("--help-query-gpu").stdout)
        except Failure:
            return _PLAIN_QUESTION
        return question(known) if "index" in known else _PLAIN_QUESTION

    def _with_processes(self, reading: Reading) -> Reading:
        try:
            finished = self._run("--query-compute-apps=gpu_uuid,pid,used_gpu_memory", _CSV)
        except Failure as failure:
            return reading._replace(problem=_joined(reading.problem, _no_answer(failure)))
        by_uuid = {gpu["uuid"]: gpu for gpu in reading.gpus}
        for app in parse_compute_apps(finished.stdout):
            if app.uuid in by_uuid:
                process = {"pid": app.pid, "used_mib": app.used_mib}
                by_uuid[app.uuid]["processes"].append(process)
        lines = [*finished.stdout.splitlines(), *finished.stderr.splitlines()]
        problem = problem_of(finished.exit_status, lines, driver_faults.module_version())
        return reading._replace(problem=_joined(reading.problem, problem) or None)

    def _run(self, *arguments: str, limit_s: float = LIMIT_S) -> command.Finished:
        return command.run(self._context, [self._program, *arguments], limit_s)


def _joined(*problems: Optional[str]) -> str:
    return " ".join(dict.fromkeys(problem for problem in problems if problem))


def _no_answer(failure: Failure) -> str:
    if failure.kind != "no_answer":
        return failure.message
    return (
        "{}: the driver hangs. Look for Xid in the host's kernel log (dmesg | grep -i xid) and "
        "for processes in state D; only a reboot of the host may help.".format(failure.message)
    )
