"""What a suite asks of its hosts, so that what it no longer asks can be told."""

from __future__ import annotations

from typing import Any

from eagleops.nights.catalogue import KINDS
from eagleops.nights.rule import Rule, asked


def test_a_suite_asks_for_all_kinds_profiles_and_commands_that_are_on() -> None:
    """A kind of a host by its own name, the others once for each profile or command."""

    def rule(check: str) -> Rule:
        kind = check.partition(":")[0]
        return Rule.of(kind, severity="off" if kind in {"disk", "pin"} else None)

    checks = asked(rule, ["a", "b"], ["smoke"])

    assert {"reach", "doctor", "launch:a", "launch:b", "speed:b", "command:smoke"} <= set(checks)
    assert not {"disk", "pin:a", "launch", "command", "speed"} & set(checks)
    assert len(checks) == len(set(checks))
    assert {check.partition(":")[0] for check in checks} == set(KINDS) - {"disk", "pin"}
    assert "launch:a" not in asked(rule, [], [])


def test_one_check_that_is_off_is_not_asked_for_and_one_that_is_on_is() -> None:
    """By its whole name, whatever its kind says: a fault of it is over, or may still stand."""
    ruled = {"speed:a": "off", "pin": "off", "pin:b": "fail", "command:smoke": "off"}

    def rule(check: str) -> Rule:
        kind = check.partition(":")[0]
        severity: Any = ruled.get(check, ruled.get(kind))
        return Rule.of(kind, severity=severity)

    checks = asked(rule, ["a", "b"], ["smoke", "nccl"])

    assert {"speed:b", "pin:b", "command:nccl"} <= set(checks)
    assert not {"speed:a", "pin:a", "command:smoke"} & set(checks)
