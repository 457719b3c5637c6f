"""One thing that is wrong in a profile, or that its writer should know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import attrs

# error: it will not do what it says, or not start; nothing is launched.
# warning: it may hurt. note: what its writer should know.
Severity = Literal["error", "warning", "note"]
ORDER = ("error", "warning", "note")


@attrs.frozen
class Finding:
    """One finding.

    Attributes:
        rule: The rule's stable name.
        severity: ``error``, ``warning`` or ``note``.
        where: File, line and key, for example ``hosts.yaml:35: profiles.nccl.env.NCCL_ALGO``.
        message: What is wrong, and why it matters.
        fix: What to write instead; may be empty.
    """

    rule: str
    severity: Severity
    where: str
    message: str
    fix: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON."""
        return attrs.asdict(self)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings, what is worst first; each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda one: ORDER.index(one.severity)))


def worst(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among them; None where there are none."""
    found = {one.severity for one in findings}
    return next((severity for severity in ORDER if severity in found), None)


def counted(findings: Iterable[Finding]) -> str:
    """``2 errors, 1 warning``; ``nothing found`` where there is nothing."""
    numbers = dict.fromkeys(ORDER, 0)
    for one in findings:
        numbers[one.severity] += 1
    told = [f"{n} {severity}{'s' * (n > 1)}" for severity, n in numbers.items() if n]
    return ", ".join(told) or "nothing found"
