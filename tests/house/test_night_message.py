"""The page on JSON documents describes the message that a night sends."""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from eagleops.nights.fault import Fault
from eagleops.nights.faults import News
from eagleops.nights.message import SCHEMA, json_message
from eagleops.nights.night import Night

TIME = "2026-10-02T02:30:00Z"


def test_every_key_of_a_night_s_message_is_described(checkout: Path) -> None:
    """Those of the message, of a fault in it, and its version."""
    page = (checkout / "docs/reference/json.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", page, flags=re.MULTILINE)
    (described,) = (part for part in section if part.startswith("The nightly message\n"))
    message = json_message(Night(suite="s", uuid="u", began_utc=TIME), News(), report=None)
    in_a_fault = set(attrs.fields_dict(Fault))

    named = set(re.findall(r"`([a-z_]+)(?:\[\])?`", described))

    assert (set(message) | in_a_fault) - named == set()
    assert f"an integer: {SCHEMA}" in described
