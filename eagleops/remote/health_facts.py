"""What ``nvidia-smi -q -x`` tells of each GPU's health, whichever driver tells it.

Tags came and went with drivers and with architectures: Ampere and later remap rows where
earlier GPUs retire pages; error counts are by memory (SRAM, DRAM) since Turing, by single and
double bits before. A tag that is not there, and every word for "not told", is None, never 0.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from eagleops.remote.nvidia_smi import number, told
from eagleops.remote.smi_tree import (
    DEFAULT_POWER_LIMIT,
    LINK,
    MAX_PCIE_GEN,
    MAX_PCIE_WIDTH,
    POWER_LIMIT,
    Places,
    number_at,
    read,
    text_at,
)

Facts = Dict[str, Any]

NUMBERS: Tuple[Tuple[str, Places], ...] = (
    ("fan_pct", ("fan_speed",)),
    (
        "power_w",
        (
            "gpu_power_readings/instant_power_draw",
            "gpu_power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
            "power_readings/power_draw",
        ),
    ),
    ("power_limit_w", POWER_LIMIT),
    ("default_power_limit_w", DEFAULT_POWER_LIMIT),
    ("temperature_c", ("temperature/gpu_temp",)),
    ("memory_temperature_c", ("temperature/memory_temp",)),
    ("utilization_pct", ("utilization/gpu_util",)),
    ("sm_clock_mhz", ("clocks/sm_clock",)),
)
PCIE: Tuple[Tuple[str, Places], ...] = (
    ("gen", (LINK + "pcie_gen/current_link_gen",)),
    ("max_gen", MAX_PCIE_GEN),
    ("width", (LINK + "link_widths/current_link_width",)),
    ("max_width", MAX_PCIE_WIDTH),
    ("replays", ("pci/replay_counter",)),
)
# Places of one scope; several are added, for drivers tell them in parts.
CORRECTED = (("sram_correctable", "dram_correctable"), ("single_bit/total",))
UNCORRECTED = (
    (
        "sram_uncorrectable",
        "sram_uncorrectable_parity",
        "sram_uncorrectable_secded",
        "dram_uncorrectable",
    ),
    ("double_bit/total",),
)
REMAPPED: Tuple[Tuple[str, str], ...] = (
    ("correctable", "remapped_row_corr"),
    ("uncorrectable", "remapped_row_unc"),
)
_REASONS = ("clocks_event_reason", "clocks_throttle_reason")
_SHUT = frozenset({"n/a", "[n/a]", "", "not supported", "[not supported]"})


class Document(NamedTuple):
    """What was told of all GPUs."""

    driver_version: Optional[str]
    gpus: List[Facts]


def parse(text: str) -> Tuple[Document, List[str]]:
    """Reads the document, with the lines before and after it: the driver's complaints.

    Returns:
        Its GPUs in its order, which is that of their indices, each with ``index``, ``uuid``,
        ``name``, ``bus_id``, ``state`` (P0 to P15), ``recovery_action``, ``ecc`` (``mode``,
        ``volatile`` and ``aggregate`` with ``corrected`` and ``uncorrected``,
        ``threshold_exceeded``, ``repair_pending``, ``unrepairable``), ``retired_pages``
        (``single_bit``, ``double_bit``, ``pending``), ``remapped_rows`` (``correctable``,
        ``uncorrectable``, ``pending``, ``failure``), ``pcie`` (``gen``, ``max_gen``, ``width``,
        ``max_width``, ``replays``), ``fan_pct``, ``fan_problem`` (the driver's word for a fan
        that it cannot read), ``power_w``, ``power_limit_w``, ``default_power_limit_w``,
        ``temperature_c``, ``memory_temperature_c``, ``utilization_pct``, ``sm_clock_mhz`` and
        ``throttle_reasons``. No document is one without GPUs.
    """
    root, beside = read(text)
    if root is None:
        return Document(None, []), beside
    gpus = [_gpu(index, gpu) for index, gpu in enumerate(root.findall("gpu"))]
    return Document(text_at(root, ("driver_version",)), gpus), beside


def _gpu(index: int, gpu: "ET.Element") -> Facts:
    fan = (gpu.findtext("fan_speed") or "").strip()
    fan_problem = None if number(fan) is not None or fan.lower() in _SHUT else fan
    return {
        "index": index,
        "uuid": text_at(gpu, ("uuid",)),
        "name": text_at(gpu, ("product_name",)),
        "bus_id": told(gpu.get("id", "")),
        "state": text_at(gpu, ("performance_state",)),
        "recovery_action": text_at(gpu, ("gpu_recovery_action",)),
        "ecc": _ecc(gpu),
        "retired_pages": _retired_pages(gpu),
        "remapped_rows": {
            **{name: _whole(gpu, ("remapped_rows/" + tag,)) for name, tag in REMAPPED},
            "pending": _yes(gpu, ("remapped_rows/remapped_row_pending",)),
            "failure": _yes(gpu, ("remapped_rows/remapped_row_failure",)),
        },
        "pcie": {name: _whole(gpu, places) for name, places in PCIE},
        "fan_problem": fan_problem,
        "throttle_reasons": _throttle_reasons(gpu),
        **{name: number_at(gpu, places) for name, places in NUMBERS},
    }


def _ecc(gpu: "ET.Element") -> Facts:
    mode = text_at(gpu, ("ecc_mode/current_ecc",))
    facts: Facts = {"mode": mode}
    for scope in ("volatile", "aggregate"):
        counts = gpu.find("ecc_errors/" + scope)
        facts[scope] = {
            "corrected": _sum(counts, CORRECTED),
            "uncorrected": _sum(counts, UNCORRECTED),
        }
    repairs = ("ecc_errors/channel_repair_pending", "ecc_errors/tpc_repair_pending")
    facts["threshold_exceeded"] = _yes(gpu, ("ecc_errors/aggregate/sram_threshold_exceeded",))
    facts["repair_pending"] = _any(_yes(gpu, (place,)) for place in repairs)
    facts["unrepairable"] = _yes(gpu, ("ecc_errors/unrepairable_memory",))
    return facts


def _retired_pages(gpu: "ET.Element") -> Facts:
    pending = ("retired_pages/pending_retirement", "retired_pages/pending_blacklist")
    count = "retired_pages/{}_retirement/retired_count"
    return {
        "single_bit": _whole(gpu, (count.format("multiple_single_bit"),)),
        "double_bit": _whole(gpu, (count.format("double_bit"),)),
        "pending": _any(_yes(gpu, (place,)) for place in pending),
    }


def _throttle_reasons(gpu: "ET.Element") -> Optional[List[str]]:
    for prefix in _REASONS:
        reasons = gpu.find(prefix + "s")
        known = {} if reasons is None else {child.tag: (child.text or "") for child in reasons}
        states = {tag[len(prefix) + 1 :]: text.strip() for tag, text in known.items()}
        if set(states.values()) & {"Active", "Not Active"}:
            return [name for name, state in states.items() if state == "Active"]
    return None


def _sum(counts: Optional["ET.Element"], ways: Tuple[Places, ...]) -> Optional[int]:
    """The sum of what is told of the first way that tells anything."""
    for places in ways:
        parts = [] if counts is None else [_whole(counts, (place,)) for place in places]
        known = [part for part in parts if part is not None]
        if known:
            return sum(known)
    return None


def _any(states: Any) -> Optional[bool]:
    known = [state for state in states if state is not None]
    return any(known) if known else None


def _yes(element: "ET.Element", places: Places) -> Optional[bool]:
    return {"Yes": True, "No": False}.get(text_at(element, places) or "")


def _whole(element: "ET.Element", places: Places) -> Optional[int]:
    value = number_at(element, places)
    return None if value is None else int(value)
