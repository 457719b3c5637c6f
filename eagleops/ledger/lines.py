"""What a run is told by: lines that can be ordered, gathered, and compared with another run's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

# In the order in which a difference is likely to be the reason for another figure.
TITLES: Mapping[str, str] = {
    "env": "Environment",
    "args": "Command",
    "patches": "Files of the engine that are not as its wheel or commit has them",
    "model": "Model",
    "versions": "Versions",
    "clocks": "Clocks, limits and throttling",
    "machine": "Machine",
}
SECTIONS = tuple(TITLES)
# What decides a step's time comes first among the versions.
FIRST = (
    "driver",
    "NCCL loaded",
    "sglang",
    "vllm",
    "torch",
    "sgl-kernel",
    "sglang-kernel",
    "flashinfer-python",
    "triton",
    "Python",
    "kernel",
)
# Throttling and limits come before what follows from them.
CAUSES = ("throttled", "power_limit", "default_power", "max_power", "application_")
MOST_CHARACTERS = 100


@attrs.frozen
class Measured:
    """A measurement: it differs from another by more than measuring again would.

    Attributes:
        share: Smallest difference that counts, of the larger of the two values.
        least: Smallest difference that counts, in the value's own unit.
    """

    value: float
    unit: str
    share: float = 0.0
    least: float = 0.0

    def __str__(self) -> str:
        return f"{self.value:,.6g} {self.unit}".strip()

    def differs(self, other: Measured) -> bool:
        """Whether the two values are further apart than they would be by chance."""
        apart = abs(self.value - other.value)
        return apart > max(self.least, self.share * max(abs(self.value), abs(other.value)))


Value = str | Measured


@attrs.frozen
class Line:
    """One fact of a run.

    Attributes:
        section: One of :data:`SECTIONS`.
        gpu: The index of the GPU that it is about; None where it is about none.
    """

    section: str
    what: str
    value: Value
    gpu: int | None = None


def rank(section: str, what: str) -> tuple[int, int, int, str]:
    """Where a fact stands among others: the likeliest reason for another figure first."""
    first = FIRST.index(what) if what in FIRST else len(FIRST)
    symptom = section == "clocks" and not what.startswith(CAUSES)
    return SECTIONS.index(section), first, int(symptom), what


def named(what: str, gpus: Iterable[int]) -> str:
    """A fact with the GPUs that it is about, for example ``GPU 0-7: power_limit_w``."""
    indices = sorted(gpus)
    if not indices:
        return what
    first, last = indices[0], indices[-1]
    run = indices == list(range(first, last + 1)) and first != last
    return f"GPU {f'{first}-{last}' if run else ','.join(map(str, indices))}: {what}"


def short(text: str) -> str:
    """A text for a table's cell; the whole of it is in the JSON."""
    if "\n" in text:
        return f"{len(text.splitlines())} lines: see --json"
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
