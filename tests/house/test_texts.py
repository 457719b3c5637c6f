"""Shipped texts name no machine of anybody's."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

import eagleops

# RFC 5737 and loopback: an address in a text is one of these.
ALLOWED = [
    ipaddress.ip_network(text)
    for text in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "127.0.0.0/8", "0.0.0.0/32")
]
ADDRESS = re.compile(r"(?<![\w.])(\d{1,3}(?:\.\d{1,3}){3})(?![\w.]|\.\d)")
BINARY = {".pyc", ".gz", ".zip", ".png", ".so"}


def shipped(checkout: Path) -> Iterator[Path]:
    """The package's files, and the texts beside it."""
    yield from (p for p in sorted(Path(eagleops.__file__).parent.rglob("*")) if p.is_file())
    yield from sorted(checkout.glob("*.md"))
    yield from sorted(checkout.glob("*.yaml"))
    yield from sorted(checkout.glob("changelog.d/*.md"))
    yield from (p for p in sorted((checkout / "docs").rglob("*.md")) if "_build" not in p.parts)


def strangers(text: str) -> list[str]:
    """Addresses of a text that are neither documentation's nor loopback."""
    found = []
    for word in ADDRESS.findall(text):
        try:
            address = ipaddress.ip_address(word)
        except ValueError:
            continue
        if not any(address in network for network in ALLOWED):
            found.append(word)
    return found


def test_texts_name_documentation_addresses_alone(checkout: Path) -> None:
    """A real address in a text would be somebody's machine, or look like it."""
    named = {
        path.name: found
        for path in shipped(checkout)
        if path.suffix not in BINARY
        and (found := strangers(path.read_text(encoding="utf-8", errors="replace")))
    }

    assert named == {}


def test_a_strange_address_would_be_seen() -> None:
    """The check itself sees a private address, and leaves versions and examples alone."""
    text = "ssh root@10.1.2.3, root@192.0.2.6, driver 580.159.04, 1.2.3.4.5, 127.0.0.1:8000"

    assert strangers(text) == ["10.1.2.3"]
