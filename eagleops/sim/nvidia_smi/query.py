"""``--query-gpu`` and ``--query-compute-apps``: fields in, comma-separated values out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from eagleops.sim.gpus import Gpu, Process
from eagleops.sim.nvidia_smi.failures import lost


class Field(NamedTuple):
    """One property that can be asked for.

    Attributes:
        names: Its spellings; a header answers with the first.
        unit: As it stands behind the value and in the header; empty where there is none.
        tell: The value, without its unit.
        about: Its sentence in the help.
    """

    names: tuple[str, ...]
    unit: str
    tell: Callable[[Gpu], str]
    about: str

    @property
    def header(self) -> str:
        """The head of its column."""
        return f"{self.names[0]} [{self.unit}]" if self.unit else self.names[0]

    def cell(self, gpu: Gpu, *, units: bool) -> str:
        """Its value for that GPU."""
        value = self.tell(gpu)
        return f"{value} {self.unit}" if self.unit and units and value[0] != "[" else value


class UnknownField(Exception):
    """A field that this nvidia-smi does not know: the whole query fails."""


class Format(NamedTuple):
    """``--format=csv[,noheader][,nounits]``."""

    header: bool = True
    units: bool = True

    @classmethod
    def parse(cls, text: str) -> Format | None:
        """The format, or None where it is not CSV or a word of it is unknown."""
        words = set(text.split(","))
        if "csv" not in words or words - {"csv", "noheader", "nounits"}:
            return None
        return cls("noheader" not in words, "nounits" not in words)


def chosen(asked: str, known: Mapping[str, Field]) -> list[Field]:
    """The fields of a query.

    Raises:
        UnknownField: with the name, for the first that is not known.
    """
    fields = []
    for name in asked.split(","):
        field = known.get(name.strip())
        if field is None:
            raise UnknownField(name.strip())
        fields.append(field)
    return fields


def gpu_rows(gpus: Sequence[Gpu], fields: Sequence[Field], form: Format) -> list[str]:
    """The answer to ``--query-gpu``; a lost GPU's line tells that it is lost."""
    rows = [", ".join(field.header for field in fields)] if form.header else []
    for gpu in gpus:
        if gpu.lost:
            rows.append(lost(gpu))
        else:
            rows.append(", ".join(field.cell(gpu, units=form.units) for field in fields))
    return rows


_APP_FIELDS: dict[str, tuple[str, str, Callable[[Gpu, Process], str]]] = {
    "gpu_name": ("gpu_name", "", lambda gpu, _: gpu.name),
    "gpu_bus_id": ("gpu_bus_id", "", lambda gpu, _: gpu.bus_id),
    "gpu_uuid": ("gpu_uuid", "", lambda gpu, _: gpu.uuid),
    "gpu_serial": ("gpu_serial", "", lambda *_: "[N/A]"),
    "pid": ("pid", "", lambda _, process: str(process.pid)),
    "process_name": ("process_name", "", lambda _, process: process.title),
    "name": ("process_name", "", lambda _, process: process.title),
    "used_gpu_memory": ("used_gpu_memory", "MiB", lambda _, process: str(process.mib)),
    "used_memory": ("used_gpu_memory", "MiB", lambda _, process: str(process.mib)),
}


def app_rows(gpus: Sequence[Gpu], asked: str, form: Format) -> list[str]:
    """The answer to ``--query-compute-apps``.

    Raises:
        UnknownField: with the name, for the first that is not known.
    """
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in _APP_FIELDS:
            raise UnknownField(name)
    columns = [_APP_FIELDS[name] for name in names]
    rows = []
    if form.header:
        rows.append(", ".join(f"{head} [{unit}]" if unit else head for head, unit, _ in columns))
    for gpu in gpus:
        for process in () if gpu.lost else gpu.processes:
            cells = [
                f"{tell(gpu, process)} {unit}" if unit and form.units else tell(gpu, process)
                for _, unit, tell in columns
            ]
            rows.append(", ".join(cells))
    return rows
