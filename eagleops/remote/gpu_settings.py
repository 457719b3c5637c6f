"""How the GPUs are set up: limits, modes and firmware, and how they are connected.

From ``nvidia-smi -q -x``: of its tree a tag that this driver does not have is a fact that is
not told, where ``--query-gpu`` would refuse the whole question.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from eagleops.remote import command
from eagleops.remote.context import Context
from eagleops.remote.failure import Failure
from eagleops.remote.gpus import Gpus
from eagleops.remote.nvidia_smi import told
from eagleops.remote.smi_tree import (
    DEFAULT_POWER_LIMIT,
    LIMIT_S,
    MAX_PCIE_GEN,
    MAX_PCIE_WIDTH,
    POWER_LIMIT,
    QUERY,
    Places,
    number_at,
    read,
    said,
    text_at,
)

Facts = Dict[str, Any]

# Each fact's places in the tree, of which drivers have one or the other.
TEXTS: Tuple[Tuple[str, Places], ...] = (
    ("uuid", ("uuid",)),
    ("name", ("product_name",)),
    ("vbios", ("vbios_version",)),
    ("gsp_firmware", ("gsp_firmware_version",)),
    ("persistence", ("persistence_mode",)),
    ("ecc", ("ecc_mode/current_ecc",)),
    ("mig", ("mig_mode/current_mig",)),
    ("compute_mode", ("compute_mode",)),
    ("virtualization", ("gpu_virtualization_mode/virtualization_mode",)),
)
NUMBERS: Tuple[Tuple[str, Places], ...] = (
    ("total_mib", ("fb_memory_usage/total",)),
    ("power_limit_w", POWER_LIMIT),
    ("default_power_limit_w", DEFAULT_POWER_LIMIT),
    (
        "max_power_limit_w",
        ("gpu_power_readings/max_power_limit", "power_readings/max_power_limit"),
    ),
    ("max_sm_clock_mhz", ("max_clocks/sm_clock",)),
    ("max_mem_clock_mhz", ("max_clocks/mem_clock",)),
    ("application_sm_clock_mhz", ("applications_clocks/graphics_clock",)),
    ("application_mem_clock_mhz", ("applications_clocks/mem_clock",)),
    ("max_pcie_gen", MAX_PCIE_GEN),
    ("max_pcie_width", MAX_PCIE_WIDTH),
)
_TERMINAL = re.compile(r"\x1b\[[0-9;]*m")


class Document(NamedTuple):
    """What ``nvidia-smi -q -x`` tells of the settings."""

    driver_version: Optional[str]
    cuda_version: Optional[str]
    gpus: List[Facts]


def parse(text: str) -> Document:
    """Reads the document; GPUs in its order, which is that of their indices.

    Raises:
        ValueError: if it is no such document.
    """
    root, beside = read(text)
    if root is None:
        raise ValueError("nvidia-smi -q -x gave no XML: {}".format(said(beside)))
    return Document(
        text_at(root, ("driver_version",)),
        text_at(root, ("cuda_version",)),
        [dict(_settings(gpu), index=index) for index, gpu in enumerate(root.findall("gpu"))],
    )


def settings(context: Context) -> Facts:
    """The GPUs' settings, the driver's versions, and the topology.

    Returns:
        ``source``, ``driver_version``, ``cuda_version`` (the newest that the driver can),
        ``gpus``, ``topology`` (the text of ``nvidia-smi topo -m``), and ``problem``.
    """
    with Gpus(context) as gpus:
        reading, source = gpus.read(), gpus.source
    facts: Facts = {
        "source": source,
        "driver_version": reading.driver_version,
        "cuda_version": None,
        "gpus": [_known(gpu) for gpu in reading.gpus],
        "topology": None,
        "problem": reading.problem,
    }
    program = command.find(context, "nvidia-smi")
    if program is None:
        return dict(facts, problem=reading.problem or "no nvidia-smi on PATH: settings are unknown")
    try:
        document = parse(command.run(context, [program, *QUERY], LIMIT_S).stdout)
        topology = command.run(context, [program, "topo", "-m"], LIMIT_S)
    except (Failure, ValueError) as error:
        return dict(facts, problem=reading.problem or getattr(error, "message", str(error)))
    facts["driver_version"] = facts["driver_version"] or document.driver_version
    facts["cuda_version"] = document.cuda_version
    facts["gpus"] = _joined(facts["gpus"], document.gpus)
    if topology.exit_status == 0:
        facts["topology"] = without_colours(topology.stdout)
    return facts


def without_colours(text: str) -> str:
    """``topo -m`` underlines its head even for a pipe."""
    return "\n".join(line.rstrip() for line in _TERMINAL.sub("", text).splitlines()).strip("\n")


def _settings(gpu: "ET.Element") -> Facts:
    facts: Facts = {name: text_at(gpu, places) for name, places in TEXTS}
    facts["bus_id"] = told(gpu.get("id", ""))
    facts.update((name, number_at(gpu, places)) for name, places in NUMBERS)
    return facts


def _known(gpu: Facts) -> Facts:
    names = ("index", "uuid", "name", "bus_id", "total_mib", "power_limit_w")
    return {name: gpu[name] for name in names}


def _joined(read: List[Facts], told_of: List[Facts]) -> List[Facts]:
    if not read:
        return told_of
    by_uuid = {gpu["uuid"]: gpu for gpu in told_of}
    known = ({name: value for name, value in gpu.items() if value is not None} for gpu in read)
    return [{**by_uuid.get(gpu.get("uuid"), {}), **gpu} for gpu in known]
