"""The tree of ``nvidia-smi -q -x``: a fact's places in it, of which a driver has one or the other.

A place that is not there, and every word for "not told", is None, never 0.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Optional, Tuple

from eagleops.remote.nvidia_smi import told

Places = Tuple[str, ...]

LINK = "pci/pci_gpu_link_info/"
MAX_PCIE_GEN: Places = (LINK + "pcie_gen/max_link_gen",)
MAX_PCIE_WIDTH: Places = (LINK + "link_widths/max_link_width",)
POWER_LIMIT: Places = (
    "gpu_power_readings/current_power_limit",
    "gpu_power_readings/power_limit",
    "power_readings/enforced_power_limit",
    "power_readings/power_limit",
)
DEFAULT_POWER_LIMIT: Places = (
    "gpu_power_readings/default_power_limit",
    "power_readings/default_power_limit",
)


def text_at(element: "ET.Element", places: Places) -> Optional[str]:
    """The first text that is told at one of these places."""
    for place in places:
        text = told(element.findtext(place) or "")
        if text is not None:
            return text
    return None
