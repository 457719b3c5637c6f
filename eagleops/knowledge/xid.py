"""Xid errors: what each code means, whether it is a fault of the machine, and the way out.

The facts and their sources stand in ``xid.toml`` beside this module.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal

import attrs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# See xid.toml.
Blame = Literal["fault", "program", "trace"]
# Its text tells the action that the driver asks for; this one is that none is needed any more.
RECOVERY_CHANGED = 154
NO_RECOVERY = "(None)"


@attrs.frozen
class XidMeaning:
    """What a code means."""

    xid: int
    name: str
    kind: Blame
    way_out: str


def meaning(xid: int, text: str = "") -> XidMeaning:
    """What the code means; one that is not known counts as a fault.

    Args:
        xid: The code.
        text: The driver's words after it.
    """
    known = _meanings().get(xid)
    if known is None:
        return XidMeaning(xid, "not known here", "fault", _CATALOGUE)
    if xid == RECOVERY_CHANGED and text.rstrip(". ").endswith(NO_RECOVERY):
        return attrs.evolve(known, kind="trace", way_out="")
    return known


_CATALOGUE = "Look it up in NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors)."


@cache
def _meanings() -> Mapping[int, XidMeaning]:
    text = resources.files("eagleops.knowledge").joinpath("xid.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return {
        int(code): XidMeaning(
            int(code), facts["name"], facts["kind"], data["way_out"][facts["way_out"]]
        )
        for code, facts in data["xid"].items()
    }
