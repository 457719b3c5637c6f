"""A rule: a kind of check with the severity and the limit that a suite gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import attrs

from eagleops.nights.catalogue import KINDS, CheckKind
from eagleops.nights.finding import Finding, check_name

Severity = Literal["warn", "fail", "off"]


@attrs.frozen
class Rule:
    """What a suite asks of one kind of check.

    Attributes:
        severity: What a fault is; ``off`` leaves the check out.
        limit: In the kind's unit; None for a kind without one.
    """

    kind: CheckKind
    severity: Severity
    limit: float | None = None

    @classmethod
    def of(cls, kind: str, *, severity: Severity | None = None, limit: float | None = None) -> Rule:
        """The rule of that kind, with the catalogue's defaults for what is not given.

        Raises:
            KeyError: if there is no such kind.
        """
        found = KINDS[kind]
        return cls(found, severity or found.severity, found.limit if limit is None else limit)

    @property
    def on(self) -> bool:
        """Whether it is looked at."""
        return self.severity != "off"

    def passed(self, host: str, message: str, *, subject: str = "", **more: Any) -> Finding:
        """A finding that all is well; ``more`` as :class:`Finding` takes it."""
        return self._finding("pass", host, message, subject, more)

    def faulty(self, host: str, message: str, *, subject: str = "", **more: Any) -> Finding:
        """A finding of a fault, as severe as the rule says."""
        state = "warn" if self.severity == "warn" else "fail"
        return self._finding(state, host, message, subject, more)

    def skipped(self, host: str, why: str, *, subject: str = "", **more: Any) -> Finding:
        """A finding that nothing is known, and why."""
        return self._finding("skip", host, why, subject, more)

    def _finding(
        self, state: Any, host: str, message: str, subject: str, more: dict[str, Any]
    ) -> Finding:
        told = {"limit": self.limit, "unit": self.kind.unit, **more}
        return Finding(check_name(self.kind.id, subject), host, state, message, **told)


def asked(
    rule: Callable[[str], Rule], profiles: Iterable[str], commands: Iterable[str]
) -> tuple[str, ...]:
    """The checks that a suite asks of each of its hosts, as :attr:`Night.asked` keeps them.

    A kind that finds its subjects on the host (``doctor:ptrace``) stands for all of them.

    Args:
        rule: The suite's rule of a check, by its whole name.
        profiles: Those that it launches.
        commands: The names of its own commands.
    """
    subjects = {"host": ("",), "profile": tuple(profiles), "command": tuple(commands)}
    every = (
        check_name(kind.id, subject) for kind in KINDS.values() for subject in subjects[kind.of]
    )
    return tuple(check for check in every if rule(check).on)
