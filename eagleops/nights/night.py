"""A night: one pass of a suite over its hosts, as it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from eagleops.nights.finding import Finding

Outcome = Literal["running", "done", "time_limit", "interrupted"]
VERSION = 1


@attrs.frozen(kw_only=True)
class Night:
    """One pass.

    Attributes:
        suite: Its name in hosts.yaml.
        uuid: Its own name.
        began_utc: RFC 3339, by the client's clock; ``ended_utc`` is None while it runs.
        outcome: ``running`` also of a night that was cut off: it can be taken up.
        hosts: Those that it was to look at.
        findings: In the order in which they were made.
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
    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    journal: Mapping[str, Any] = attrs.field(factory=dict)
    told: Mapping[str, Any] = attrs.field(factory=dict)

    def finding(self, host: str, check: str) -> Finding | None:
        """What that check found on that host; None where it was not made."""
        return next((f for f in self.findings if f.host == host and f.id == check), None)

    def to_dict(self) -> dict[str, Any]:
        """The night as JSON."""
        return {
            "version": VERSION,
            **attrs.asdict(self, recurse=False),
            "hosts": list(self.hosts),
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
        values["findings"] = tuple(map(Finding.from_dict, values.get("findings", ())))
        return cls(**values)
