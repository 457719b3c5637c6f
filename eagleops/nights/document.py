"""A night as the text of its file, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import timezone
from typing import Any
from urllib.parse import quote

from eagleops.ledger.redaction import without_secrets
from eagleops.nights.finding import STATES, Finding
from eagleops.nights.night import VERSION, Night, instant

UUID_DIGITS = 8
# The files in a suite's folder that are nights, or were to be; others are somebody else's.
NAMED = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[^/]*\.json")
SUFFIX = ".json"
# What a night is made of, so that other JSON is not taken for one.
REQUIRED = {"suite": str, "uuid": str, "began_utc": str, "findings": list, "facts": dict}
# And what may stand there besides, of its own kind alone.
OPTIONAL = {"hosts": list, "asked": dict, "journal": dict, "told": dict}
# Where texts stand that came from machines and programs.
SPOKEN = ("findings", "facts", "journal", "told")


def name_of(night: Night) -> str:
    """Its file's name: such names sort as :attr:`Night.order` does.

    Raises:
        ValueError: if ``began_utc`` is no time.
    """
    began = instant(night.began_utc).astimezone(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
    return f"{began}-{quote(night.uuid[:UUID_DIGITS], safe='')}{SUFFIX}"


def folder_of(suite: str) -> str:
    """The name of a suite's folder: its own, whatever it holds."""
    escaped = quote(suite, safe="")
    return escaped.replace(".", "%2E", 1) if escaped.startswith(".") else escaped


def text_of(night: Night, secrets: Iterable[str] = ()) -> bytes:
    """The night as it is kept: without secrets, and without numbers that JSON lacks.

    Args:
        night: Which.
        secrets: Values that must not be kept whatever name they stand under.
    """
    whole = night.to_dict()
    plain = without_secrets({part: whole[part] for part in SPOKEN}, secrets)
    # Names of hosts and checks are the user's own: a host that is called "token" stays one.
    for kept, finding in zip(plain["findings"], night.findings, strict=True):
        kept.update(id=finding.id, host=finding.host)
    return json.dumps({**whole, **plain}, separators=(",", ":"), allow_nan=False).encode("ascii")


def night_of(text: bytes) -> Night:
    """The night that a file holds.

    Raises:
        ValueError: if it is none; its text says why.
    """
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if trouble := _trouble(data):
        raise ValueError(trouble)
    try:
        night = Night.from_dict(data)
        name_of(night)
        if night.ended_utc is not None:
            instant(night.ended_utc)
    except (TypeError, AttributeError, KeyError, OverflowError) as error:
        raise ValueError(f"it is no night: {error}") from error
    if not all(map(_is_whole, night.findings)):
        raise ValueError("it is no night: one of its findings is none")
    return night


def _is_whole(finding: Finding) -> bool:
    texts = (finding.id, finding.host, finding.message, finding.unit)
    return (
        all(isinstance(text, str) for text in texts)
        and finding.state in STATES
        and isinstance(finding.facts, Mapping)
    )


def _trouble(data: Any) -> str:
    if not isinstance(data, Mapping):
        return "it is JSON, but no night"
    lacking = [name for name, kind in REQUIRED.items() if not isinstance(data.get(name), kind)]
    lacking += [n for n, kind in OPTIONAL.items() if not isinstance(data.get(n, kind()), kind)]
    if lacking:
        return f"it is JSON, but no night: it lacks {', '.join(lacking)}"
    odd = [n for n in ("facts", "journal", "told") if not _holds_mappings(data.get(n, {}))]
    return f"it is JSON, but no night: its {' and '.join(odd)} cannot be" if odd else ""


def _holds_mappings(parts: Mapping[str, Any]) -> bool:
    return all(isinstance(part, Mapping) for part in parts.values())


def is_newer(text: bytes) -> bool:
    """Whether a later version of eagleops wrote this file."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    version = data.get("version") if isinstance(data, Mapping) else None
    return isinstance(version, int) and version > VERSION
