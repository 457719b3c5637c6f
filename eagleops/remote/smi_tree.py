"""The tree of ``nvidia-smi -q -x``: a fact's places in it, of which a driver has one or the other.

A place that is not there, and every word for "not told", is None, never 0.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import List, Optional, Sequence, Tuple

from eagleops.remote.nvidia_smi import number, told

Places = Tuple[str, ...]

# What to ask for, and how long: of eight GPUs it takes about a second.
QUERY = ("-q", "-x")
LIMIT_S = 30.0
# What was said in place of a document is told to its beginning.
MOST_CHARS = 500

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
_BEGIN, _END = "<nvidia_smi_log>", "</nvidia_smi_log>"
_HEAD = re.compile(r"<[?!][^<>]*>")


def read(text: str) -> Tuple[Optional["ET.Element"], List[str]]:
    """The root of the document, with the lines before and after it: the driver's complaints.

    Without a document the root is None, and the lines are all that was said.
    """
    # From the root on: a document type before it could define entities without end.
    start, end = text.find(_BEGIN), text.rfind(_END)
    if not -1 < start < end:
        return None, _lines(text)
    beside = _lines(_HEAD.sub("", text[:start]) + "\n" + text[end + len(_END) :])
    try:
        return ET.fromstring(text[start : end + len(_END)]), beside  # noqa: S314 - see above
    except ET.ParseError as error:
        return None, [*beside, "broken XML: {}".format(error)]


def said(lines: Sequence[str]) -> str:
    """What was said in place of a document, in a line."""
    return " ".join(lines)[:MOST_CHARS].strip() or "no output"


def text_at(element: "ET.Element", places: Places) -> Optional[str]:
    """The first text that is told at one of these places."""
    for place in places:
        text = told(element.findtext(place) or "")
        if text is not None:
            return text
    return None


def number_at(element: "ET.Element", places: Places) -> Optional[float]:
    """The first number that is told at one of these places; a whole one is an ``int``."""
    for place in places:
        value = number(element.findtext(place) or "")
        if value is not None:
            return int(value) if value == int(value) else value
    return None


def _lines(text: str) -> List[str]:
    return list(filter(str.strip, text.splitlines()))
