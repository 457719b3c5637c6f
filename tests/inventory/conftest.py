"""What the tests of the inventory share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import pytest

from eagleops.errors import InventoryError
from eagleops.inventory import Inventory, parse

HOST = "hosts: {box: {transport: local}}\n"


@pytest.fixture
def read() -> Callable[[str], Inventory]:
    """Reads the text of an inventory; a text without hosts gets one."""

    def read(text: str) -> Inventory:
        text = textwrap.dedent(text)
        return parse(text if "hosts:" in text else HOST + text)

    return read


@pytest.fixture
def refusal(read) -> Callable[[str], str]:
    """The text of the error that an inventory is refused with."""

    def refusal(text: str) -> str:
        with pytest.raises(InventoryError) as caught:
            read(text)
        return str(caught.value)

    return refusal
