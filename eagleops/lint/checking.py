"""All rules on one profile, or on many."""

from __future__ import annotations

from eagleops.lint import (
    flags,
    machine,
    nccl,
    nccl_relations,
    serving,
    sizes,
    speculation,
    texts,
    variables,
)
from eagleops.lint.facts import UNASKED, Facts
from eagleops.lint.finding import Finding, in_order
from eagleops.lint.rule import rules
from eagleops.lint.subject import Subject
from eagleops.profile import Profile

# Each of them registers its rules; this is the order of a report.
RULEBOOKS = (texts, variables, nccl, nccl_relations, flags, speculation, sizes, serving, machine)


def lint(profile: Profile, facts: Facts = UNASKED) -> tuple[Finding, ...]:
    """Everything that the rules find in ``profile``, what is worst first.

    Args:
        profile: With everything that it inherits.
        facts: What was found out of the machine; nothing without.
    """
    subject = Subject(profile=profile, facts=facts)
    found = (one for rule in rules().values() for one in rule.findings(subject))
    return in_order(found)
