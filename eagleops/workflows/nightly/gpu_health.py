"""The nightly verdicts on the GPUs' health: pure functions of what operation ``health`` told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eagleops.machine import Machine
from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule

KINDS = (
    "xid",
    "ecc",
    "ecc-corrected",
    "rows",
    "pcie",
    "idle-throttling",
    "temperature",
    "fan",
    "power",
)


def read_health(machine: Machine, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``machine`` tells of its GPUs' health, and of Xid errors since the last night.

    A container may have no kernel log: its host is asked then, and only what is about the
    container's own GPUs is kept.

    Args:
        machine: Which.
        before: What this function returned in the last night; None for none.

    Returns:
        As operation ``health``; JSON, and what the next night is to be given as ``before``.

    Raises:
        Unreachable: if the machine itself cannot be reached.
    """
    raise NotImplementedError


def judge_health(
    host: str,
    told: Mapping[str, Any],
    before: Mapping[str, Any] | None,
    rules: Callable[[str], Rule],
    *,
    idle: bool,
) -> Iterator[Finding]:
    """A finding for each kind in :data:`KINDS` that the rules leave on.

    Args:
        host: As in hosts.yaml.
        told: Of :func:`read_health`.
        before: The same of the last night; None for none.
        rules: The suite's rule of a kind.
        idle: Whether nothing works on the GPUs; otherwise what only holds of idle GPUs is
            skipped.
    """
    raise NotImplementedError
    yield
