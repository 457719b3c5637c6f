"""Rules: each a pure function of a subject, with a stable name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import attrs

from eagleops.lint.finding import Finding, Severity
from eagleops.lint.subject import Subject

# What a check tells: where, message, fix; and its severity where that is not the rule's own.
Told = tuple[str, str, str] | tuple[str, str, str, Severity]
Check = Callable[[Subject], Iterator[Told]]

_RULES: dict[str, Rule] = {}


@attrs.frozen
class Rule:
    """One rule.

    Attributes:
        name: As in findings; it stays.
        severity: Of most of its findings.
        engines: The engines whose profiles it looks at; empty for all.
        summary: What it finds, in a sentence.
    """

    name: str
    severity: Severity
    engines: tuple[str, ...]
    summary: str
    check: Check = attrs.field(repr=False)

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """What it finds in ``subject``."""
        if self.engines and subject.profile.engine not in self.engines:
            return
        for told in self.check(subject):
            where, message, fix, *severity = told
            yield Finding(
                self.name, severity[0] if severity else self.severity, where, message, fix
            )


def rule(name: str, severity: Severity, *engines: str) -> Callable[[Check], Check]:
    """Makes a rule of a check; its docstring's first line is the rule's summary.

    Args:
        name: The rule's.
        severity: Of its findings, where they do not say another.
        engines: Whose profiles it looks at; all without any.
    """

    def register(check: Check) -> Check:
        summary = (check.__doc__ or "").strip().splitlines()[0]
        _RULES[name] = Rule(name, severity, engines, summary, check)
        return check

    return register


def rules() -> Mapping[str, Rule]:
    """All rules by name, in the order in which they look."""
    return MappingProxyType(_RULES)
