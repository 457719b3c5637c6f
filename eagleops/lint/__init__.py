"""Lint: what is wrong in a profile, found before a machine is touched.

Rules are pure functions of a profile and of what is known beside it; what is known of NCCL and of
the engines' flags stands in :mod:`eagleops.knowledge`.
"""

from eagleops.lint.checking import lint
from eagleops.lint.facts import UNASKED, ConfFile, Facts
from eagleops.lint.finding import Finding, Severity, counted, worst
from eagleops.lint.rule import Rule, rules

__all__ = [
    "UNASKED",
    "ConfFile",
    "Facts",
    "Finding",
    "Rule",
    "Severity",
    "counted",
    "lint",
    "rules",
    "worst",
]
