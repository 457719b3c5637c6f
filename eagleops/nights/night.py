"""A night: one pass of a suite over its hosts, as it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Literal

import attrs

from eagleops.nights.finding import Finding

Outcome = Literal["running", "done", "time_limit", "interrupted"]
OUTCOMES: tuple[Outcome, ...] = ("done", "time_limit", "interrupted", "running")
VERSION = 1
_CUT_SHORT: Mapping[Outcome, str] = {
    "time_limit": "The time limit ended the night early.",
    "interrupted": "The night was interrupted.",
    "running": "The night was cut off.",
}


@attrs.frozen(kw_only=True)
class Night:
    """One pass.

    Attributes:
        suite: Its name in hosts.yaml.
        uuid: Its own name.
        began_utc: RFC 3339, by the client's clock; ``ended_utc`` is None while it runs.
        outcome: ``running`` also of a night that was cut off: it can be taken up.
        hosts: Those that it was to look at.
        asked: Per host of the suite, looked at tonight or not, the checks that the suite asks
            of it: :func:`eagleops.nights.rule.asked`. What is not among them is no longer
            checked, which a check that is merely not reached is not. Empty where nobody told.
        findings: In the order in which they were made; of a check's several the last holds.
        facts: Per host what later nights are compared with, as JSON: the parts of a run that
            its machine tells (``machine``, ``gpus``, ``packages``), ``nccl_conf``, ``health``.
        journal: Per host what must be put right if the night is cut off: ``restore`` (what ran
            before) and ``launched`` (what the night itself started).
        told: Per webhook what became of its message, so that none is sent twice.
    """

    suite: str
    uuid: str
    began_utc: str
    ended_utc: str | None = None
    outcome: Outcome = "running"
    client: str = ""
    user: str = ""
    eagleops: str = ""
    hosts: tuple[str, ...] = ()
    asked: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    journal: Mapping[str, Any] = attrs.field(factory=dict)
    told: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def finished(self) -> bool:
        """Whether it came to an end, be it an early one."""
        return self.ended_utc is not None

    @property
    def cut_short(self) -> str:
        """Why not everything was looked at, in a sentence; empty where it was."""
        return _CUT_SHORT.get(self.outcome, "")

    @property
    def order(self) -> tuple[datetime, str]:
        """What nights are sorted by: when they began, and of two at once their own names.

        Raises:
            ValueError: if ``began_utc`` is no time.
        """
        return instant(self.began_utc), self.uuid

    def finding(self, host: str, check: str) -> Finding | None:
        """What that check found on that host; None where it was not made."""
        made = (f for f in reversed(self.findings) if f.host == host and f.id == check)
        return next(made, None)

    def to_dict(self) -> dict[str, Any]:
        """The night as JSON."""
        return {
            "version": VERSION,
            **attrs.asdict(self, recurse=False),
            "hosts": list(self.hosts),
            "asked": {host: list(checks) for host, checks in self.asked.items()},
            "findings": [finding.to_dict() for finding in self.findings],
            "facts": dict(self.facts),
            "journal": dict(self.journal),
            "told": dict(self.told),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Night:
        """A night from its JSON; keys that a newer version wrote are passed over."""
        known = {field.name for field in attrs.fields(cls)}
        values = {name: value for name, value in data.items() if name in known}
        values["hosts"] = tuple(values.get("hosts", ()))
        values["asked"] = {h: tuple(checks) for h, checks in values.get("asked", {}).items()}
        values["findings"] = tuple(map(Finding.from_dict, values.get("findings", ())))
        return cls(**values)


def instant(text: str) -> datetime:
    """A time in RFC 3339; one without a zone is UTC.

    Raises:
        ValueError: if it is none.
    """
    found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
