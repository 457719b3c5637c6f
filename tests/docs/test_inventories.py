"""What the pages show as a hosts.yaml is one: a reader who saves it gets no error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eagleops.inventory import parse
from parts.examples import blocks

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]

# A block that names machines stands for itself; `...` stands for what is left out.
WHOLE = [
    pytest.param(block, id=f"{page.relative_to(CHECKOUT)}:{line}")
    for page in PAGES
    for line, block in blocks(page.read_text(encoding="utf-8"), "yaml")
    if re.search(r"(?m)^hosts:", block) and not re.search(r"(?m)^ *\.\.\.$", block)
]


def test_there_are_some() -> None:
    """The pages are found, and what is whole in them."""
    assert len(WHOLE) >= 5


@pytest.mark.parametrize("text", WHOLE)
def test_a_whole_inventory_of_a_page_can_be_read(text: str) -> None:
    """Saved as it stands it names no profile, host or key that is not there."""
    inventory = parse(text)

    for name in inventory.profile_names():
        inventory.profile(name)
    assert inventory.defaults.host is None or inventory.target()
